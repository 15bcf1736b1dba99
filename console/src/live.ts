// The stream of overviews: one connection for all of the page, closed while nobody looks at it.
import { useEffect, useState } from "preact/hooks";
import { ApiError, type Overview, stream } from "./api";

/** Points that a chart has at most; one a second. */
const POINTS = 300;
/** After this time without an event the page says that the connection is cut, and opens another. */
const SILENCE_MS = 4000;
const RETRY_MS = 1500;
/** The time to the next try after the broker has refused one. */
const REFUSED_MS = 5000;
const CUT = "Connection lost.";
/** Seconds between two events that a rate is made of, at least: what was held up on the way comes at once. */
const SHORTEST = 0.5;

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
  /** Why there are no events; null while they come. */
  problem: string | null;
  /** Rises with each event. */
  tick: number;
}

const NOTHING: Live = { overview: null, points: [], problem: null, tick: 0 };
let live = NOTHING;
const listeners = new Set<(live: Live) => void>();
let current: AbortController | null = null;
let silence = 0;
let retry = 0;
let isWanted = false;

function publish(next: Partial<Live>) {
  live = { ...live, ...next };
  listeners.forEach((listener) => listener(live));
}

function point(overview: Overview, before: Overview | null, last: Point | undefined): Point {
  const time = Date.now() / 1000;
  const seconds = last ? Math.max(time - last.time, SHORTEST) : 1;
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
  silence = setTimeout(() => {
    publish({ problem: live.problem ?? CUT });
    // What comes no more may never end by itself.
    watchSilence();
    open();
  }, SILENCE_MS);
}

/** Opens the stream, in place of the one there is. The time of the silence goes on. */
function open() {
  clearTimeout(retry);
  current?.abort();
  const controller = new AbortController();
  current = controller;
  void readEvents(controller.signal).then((wait) => {
    if (!controller.signal.aborted) retry = setTimeout(open, wait);
  });
}

/** Reads events until the stream ends. Returns the time to wait for the next one. */
async function readEvents(signal: AbortSignal): Promise<number> {
  try {
    for await (const event of stream("events", signal)) {
      if (signal.aborted) break;
      handle(JSON.parse(event) as Overview);
    }
  } catch (error) {
    if (error instanceof ApiError && !signal.aborted) {
      publish({ problem: `No live figures: ${error.message.replace(/\.$/, "")}.` });
      watchSilence();
      return REFUSED_MS;
    }
  }
  return RETRY_MS;
}

function handle(overview: Overview) {
  watchSilence();
  const next = point(overview, live.overview, live.points.at(-1));
  publish({
    overview,
    points: [...live.points, next].slice(-POINTS),
    problem: null,
    tick: live.tick + 1,
  });
}

function close() {
  current?.abort();
  current = null;
  clearTimeout(retry);
  clearTimeout(silence);
}

/** Opens or closes the stream as the page is looked at or not. */
function adapt() {
  close();
  if (document.hidden || !isWanted) return;
  watchSilence();
  open();
}

document.addEventListener("visibilitychange", adapt);

/** Begins or ends the stream. */
export function follow(wanted: boolean) {
  isWanted = wanted;
  adapt();
  if (!wanted) live = NOTHING;
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
