// A message that is about to be sent: what a sender says of it, without what the broker adds.
import type { Message, Typed } from "../api";

const MEMBERS = [
  "message-id",
  "correlation-id",
  "to",
  "reply-to",
  "subject",
  "content-type",
  "session-id",
  "reply-to-session-id",
  "partition-key",
  "body",
  "body-base64",
];

/** Properties that a dead letter has got. */
const ADDED = ["DeadLetterReason", "DeadLetterErrorDescription"];

/** A dead letter that goes when its draft is sent. */
export interface Replaced {
  path: string;
  part: string;
  number: number;
}

export interface Draft {
  message: Record<string, unknown>;
  replaced?: Replaced;
}

let kept: Draft | null = null;

/** Whether there is all of a message's body, as text or as bytes. */
export function isWhole(message: Message): boolean {
  return message.body !== undefined || message["body-base64"] !== undefined;
}

/** The application properties that a message was sent with. */
export function sentProperties(message: Message): [string, Typed][] {
  return Object.entries(message.properties ?? {}).filter(([name]) => !ADDED.includes(name));
}

export function draftOf(message: Message): Record<string, unknown> {
  const draft: Record<string, unknown> = {};
  for (const name of MEMBERS) if (message[name] !== undefined) draft[name] = message[name];
  const properties = sentProperties(message);
  if (properties.length > 0) draft.properties = Object.fromEntries(properties);
  return draft;
}

/** Keeps a message for the page that sends it. */
export function keepDraft(message: Message, replaced?: Replaced) {
  kept = { message: draftOf(message), replaced };
}

/** The kept message, once. */
export function takeDraft(): Draft | null {
  const draft = kept;
  kept = null;
  return draft;
}
