// Redrives of all dead letters of an entity, one at a time for each. They go on while another page is shown.
import { useEffect, useState } from "preact/hooks";
import { call, entityPath } from "../api";
import { count, many } from "../format";

export interface Run {
  /** The messages that it will redrive; null while they are counted. */
  total: number | null;
  /** The dead letters that there were at its begin. */
  start: number;
  cancel: () => void;
}

/** By the path of the entity. */
const runs = new Map<string, Run>();
const listeners = new Set<() => void>();

function set(path: string, run?: Run) {
  if (run) runs.set(path, run);
  else runs.delete(path);
  listeners.forEach((listener) => listener());
}

/** The run of an entity, if there is one. */
export function useRun(path: string): Run | undefined {
  const [, setTurn] = useState(0);
  useEffect(() => {
    const listener = () => setTurn((turn) => turn + 1);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return runs.get(path);
}

/** Counts the dead letters that fit, and redrives them. */
export async function redriveAll(
  path: string,
  start: number,
  request: (isDry: boolean) => unknown,
  told: { say: (said: string) => void; fail: (error: string) => void },
) {
  const controller = new AbortController();
  const { signal } = controller;
  const place = entityPath(path, "/redrive");
  const cancel = () => controller.abort();
  set(path, { total: null, start, cancel });
  try {
    const dry = await call<{ selected: number }>("POST", place, request(true), { signal });
    set(path, { total: dry.selected, start, cancel });
    const answer = await call<{ redriven: number; kept: number }>("POST", place, request(false), { signal });
    told.say(`${many(answer.redriven, "dead letter")} redriven, ${count(answer.kept)} stayed.`);
  } catch (error) {
    if (signal.aborted) told.say("The redrive is cancelled. What is redriven by then stays so.");
    else told.fail((error as Error).message);
  }
  set(path);
}
