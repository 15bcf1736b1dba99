// A message that is about to be sent: what a sender says of it, without what the broker adds.
import type { Message, Typed } from "../api";

const MEMBERS = [
  "durable",
  "priority",
  "time-to-live",
  "annotations",
  "message-id",
  "user-id",
  "correlation-id",
  "to",
  "reply-to",
  "subject",
  "content-type",
  "content-encoding",
  "session-id",
  "group-sequence",
  "reply-to-session-id",
  "partition-key",
  "via-partition-key",
  "body",
  "body-base64",
  "body-type",
];

/** Bodies that are AMQP values and can be written as they were: texts and bytes. */
const WRITTEN = ["string", "binary"];
/** Types of values that a message in JSON cannot have. */
const SHOWN_ONLY = ["list", "map", "array", "decimal32", "decimal64", "decimal128", "described"];

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

function isShownOnly(value: Typed | undefined): boolean {
  return typeof value === "object" && value !== null && SHOWN_ONLY.includes(value.type);
}

/** Names of values that are shown, and that a copy cannot have. */
function shownOnly(values: unknown): string[] {
  const named = Object.entries((values ?? {}) as Record<string, Typed>);
  return named.filter(([, value]) => isShownOnly(value)).map(([name]) => name);
}

/** Why no copy of a message can be sent: what it would lose is its content. Null if one can. */
export function obstacle(message: Message): string | null {
  const type = message["body-type"];
  if (typeof type === "string" && !WRITTEN.includes(type)) {
    const what = type === "sequence" ? "consists of AMQP sequences" : `is an AMQP value of the type ${type}`;
    return `The body ${what}, which cannot be written here: a client can send the message again.`;
  }
  const [name] = shownOnly(message.properties);
  if (name === undefined) return null;
  return `The property ${name} is a list, a map or a decimal, which cannot be written here: a client can send the message again.`;
}

/** What a copy of a message lacks, in words; null if it lacks nothing. */
export function lacking(message: Message): string | null {
  const parts = shownOnly(message.annotations).map((name) => `the annotation ${name}`);
  if (message.footer !== undefined) parts.push("the footer");
  return parts.length > 0 ? `A copy of the message goes without ${parts.join(", ")}.` : null;
}

/** The application properties that a message was sent with. */
export function sentProperties(message: Message): [string, Typed][] {
  return Object.entries(message.properties ?? {}).filter(([name]) => !ADDED.includes(name));
}

export function draftOf(message: Message): Record<string, unknown> {
  const draft: Record<string, unknown> = {};
  for (const name of MEMBERS) if (message[name] !== undefined) draft[name] = message[name];
  const annotations = Object.entries((message.annotations ?? {}) as Record<string, Typed>);
  const written = annotations.filter(([, value]) => !isShownOnly(value));
  delete draft.annotations;
  if (written.length > 0) draft.annotations = Object.fromEntries(written);
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
