// What can be done with a message of each part. The broker receives the message by its number first, so each
// action fails if another receiver holds it.
import { call, entityPath } from "../api";

export interface MessagePlace {
  path: string;
  part: string;
  number: number;
}

export interface Action {
  name: string;
  /** What it does, for the question. */
  text: string;
  /** What the message is then. */
  done: string;
  fields?: string[];
  /** The button that does it, where the name alone could mean the question. */
  confirm?: string;
  run: (place: MessagePlace, typed: Record<string, string>) => Promise<void>;
}

function settling(outcome: string) {
  return async ({ path, part, number }: MessagePlace, typed: Record<string, string>) => {
    const said = { reason: typed.Reason, description: typed.Description };
    await call("POST", entityPath(path, "/settle"), { part, "sequence-number": number, outcome, ...said });
  };
}

const COMPLETE: Action = {
  name: "Complete",
  text: "The message is removed, as when a receiver completes it. This cannot be undone.",
  done: "completed",
  run: settling("complete"),
};

const ABANDON: Action = {
  name: "Abandon",
  text: "The message stays where it is, and its delivery count rises by one. At the maximum it becomes a dead letter.",
  done: "abandoned",
  run: settling("abandon"),
};

const DEFER: Action = {
  name: "Defer",
  text: "The message is set aside. Only a receiver that asks for it by its number gets it then.",
  done: "deferred",
  run: settling("defer"),
};

const DEAD_LETTER: Action = {
  name: "Dead-letter",
  text: "The message becomes a dead letter with this reason.",
  done: "a dead letter",
  fields: ["Reason", "Description"],
  run: settling("dead-letter"),
};

const REDRIVE: Action = {
  name: "Redrive",
  text: "The message goes back to the queue or subscription that it came from, as a new one without its reason.",
  done: "redriven",
  run: settling("redrive"),
};

/** Nobody receives a scheduled message: it is taken back. */
const CANCEL: Action = {
  name: "Cancel",
  confirm: "Cancel the message",
  text: "The message is removed before it is enqueued. This cannot be undone.",
  done: "cancelled",
  run: async ({ path, part, number }) => {
    const body = { part, filter: `sys.SequenceNumber = ${number}`, limit: 1 };
    const answer = await call<{ purged: number }>("POST", entityPath(path, "/purge"), body);
    if (answer.purged !== 1) throw new Error(`Message ${number} is not scheduled any more.`);
  },
};

export function actions(part: string): Action[] {
  switch (part) {
    case "active":
      return [ABANDON, DEFER, DEAD_LETTER, COMPLETE];
    case "deferred":
      return [ABANDON, DEAD_LETTER, COMPLETE];
    case "scheduled":
      return [CANCEL];
    default:
      return [COMPLETE, REDRIVE];
  }
}
