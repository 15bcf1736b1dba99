// The stream of overviews: one connection for all of the page, closed while nobody looks at it.
import { useEffect, useState } from "preact/hooks";
import { type Overview, address } from "./api";

/** Points that a chart has at most; one a second. */
const POINTS = 300;
/** After this time without an event the page says that the connection is cut. */
const SILENCE_MS = 4000;
const RETRY_MS = 1500;

export interface Point {
  /** Seconds. */
  time: number;
  in: number;
  out: number;
  active: number;
  dead: number;
  connections: number;
  /** Milliseconds of a commit, on average; null if there was none. */
  commit: number | null;
}

export interface Live {
  overview: Overview | null;
  points: Point[];
  isConnected: boolean;
  /** Rises with each event. */
  tick: number;
}

let live: Live = { overview: null, points: [], isConnected: true, tick: 0 };
const listeners = new Set<(live: Live) => void>();
let source: EventSource | null = null;
let silence = 0;
let retry = 0;
let isWanted = false;

function publish(next: Partial<Live>) {
  live = { ...live, ...next };
  listeners.forEach((listener) => listener(live));
}

function point(overview: Overview, before: Overview | null, last: Point | undefined): Point {
  const time = Date.now() / 1000;
  const seconds = last ? Math.max(time - last.time, 0.001) : 1;
  const rate = (now: number, then: number | undefined) =>
    then === undefined || now < then ? 0 : (now - then) / seconds;
  const [now, then] = [overview.commits, before?.commits];
  const groups = now && then ? now.groups - then.groups : 0;
  const micros = now && then ? now.microseconds - then.microseconds : 0;
  return {
    time,
    in: rate(overview.traffic.arrived, before?.traffic.arrived),
    out: rate(overview.traffic.completed, before?.traffic.completed),
    active: overview.messages.active,
    dead: overview.messages["dead-letter"],
    connections: overview.connections ?? 0,
    commit: groups > 0 ? micros / groups / 1000 : null,
  };
}

function watchSilence() {
  clearTimeout(silence);
  silence = setTimeout(() => publish({ isConnected: false }), SILENCE_MS);
}

function open() {
  close();
  if (document.hidden || !isWanted) return;
  watchSilence();
  source = new EventSource(address("events"));
  source.onmessage = (event) => {
    watchSilence();
    const overview = JSON.parse(event.data) as Overview;
    const next = point(overview, live.overview, live.points.at(-1));
    publish({
      overview,
      points: [...live.points, next].slice(-POINTS),
      isConnected: true,
      tick: live.tick + 1,
    });
  };
  source.onerror = () => {
    if (source?.readyState !== EventSource.CLOSED) return;
    clearTimeout(retry);
    retry = setTimeout(open, RETRY_MS);
  };
}

function close() {
  source?.close();
  source = null;
  clearTimeout(retry);
  clearTimeout(silence);
}

document.addEventListener("visibilitychange", open);

/** Begins or ends the stream. */
export function follow(wanted: boolean) {
  isWanted = wanted;
  if (wanted) open();
  else {
    close();
    live = { overview: null, points: [], isConnected: true, tick: 0 };
  }
}

export function useLive(): Live {
  const [state, setState] = useState(live);
  useEffect(() => {
    listeners.add(setState);
    setState(live);
    return () => void listeners.delete(setState);
  }, []);
  return state;
}
