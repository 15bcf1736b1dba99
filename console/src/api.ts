// The broker's interface under /$railbus/, and the session that stands for the reader's key.
import { parseExact, stringifyExact } from "./exact";
import { namespace } from "./route";

export interface Session {
  send: boolean;
  listen: boolean;
  manage: boolean;
  /** The rights are those to some entities, and the reader sees these alone. */
  "entities-only": boolean;
  csrf: string;
  /** The namespace of the key. */
  namespace: string;
  version: string;
}

export interface Counts {
  path: string;
  kind: "queue" | "topic" | "subscription";
  status: string;
  "requires-session": boolean;
  active: number;
  locked: number;
  "dead-letter": number;
  deferred: number;
  scheduled: number;
  transfer: number;
  "transfer-dead-letter": number;
  bytes: number;
  "max-bytes": number;
  receivers: number;
  "oldest-age-ms": number | null;
  arrived: number;
  delivered: number;
  completed: number;
  expired: number;
  "forward-to": string | null;
  "forward-dead-lettered-messages-to": string | null;
  departed: number;
  "dead-letters-departed": number;
}

export interface Overview {
  version: string;
  entities: { queues: number; topics: number; subscriptions: number };
  messages: Record<"active" | "locked" | "dead-letter" | "deferred" | "scheduled" | "bytes", number>;
  traffic: Record<"arrived" | "delivered" | "completed" | "expired", number>;
  /** This and the next three are there in the default namespace alone. */
  connections?: number;
  refused?: { connections: number; credentials: number };
  commits?: { groups: number; microseconds: number };
  "free-bytes"?: number;
  "fault-rules": number;
  backlogs: Counts[];
  "dead-letters": Counts[];
  alarms: { severity: "critical" | "warning"; entity?: string; text: string }[];
}

export type Typed = string | number | bigint | boolean | null | { type: string; value: unknown };

export interface Message {
  "sequence-number": number;
  "enqueued-sequence-number"?: number;
  state?: string;
  "delivery-count"?: number;
  "time-to-live"?: string;
  "enqueued-time"?: string;
  "scheduled-enqueue-time"?: string;
  "message-id"?: Typed;
  "correlation-id"?: Typed;
  subject?: string;
  "content-type"?: string;
  "session-id"?: string;
  "lock-left-ms"?: number;
  properties?: Record<string, Typed>;
  body?: string;
  "body-base64"?: string;
  "body-bytes"?: number;
  "body-start"?: string;
  error?: string;
  [name: string]: unknown;
}

export type Json = Record<string, unknown>;

/** An answer that is an error, with the sentence of the broker. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    text: string,
  ) {
    super(text);
  }
}

const BASE = "/$railbus/";
/** Rows of counts in an answer, at most. */
const ROWS = 1000;
/** Where the broker has what the reader sees, if it is of another namespace than the session's. */
const OF_NAMESPACE = namespace && `namespaces/${encodeURIComponent(namespace)}/`;
let csrf = "";
let onSignedOut = () => {};

/** Calls `listener` when the session has ended. */
export function whenSignedOut(listener: () => void) {
  onSignedOut = listener;
}

interface Options {
  signal?: AbortSignal;
  /** Nothing that is there is replaced. */
  isNew?: boolean;
  /** Numbers of the answer keep their types and digits. */
  isExact?: boolean;
}

/** Sends a request. `path` is what follows `/$railbus/`. */
async function send(method: string, path: string, body?: unknown, options: Options = {}): Promise<Response> {
  const answer = await request(method, path, body, options);
  if (answer.status !== 401 && answer.status !== 403) return answer;
  // The broker may have been started again, or another tab may have signed in: the session goes on
  // if it can, and a right that is missing shows itself again.
  try {
    await signIn();
  } catch (error) {
    // A broker that stops or has gone has not refused the session.
    if (error instanceof ApiError && error.status < 500) onSignedOut();
    return answer;
  }
  return request(method, path, body, options);
}

async function request(method: string, path: string, body: unknown, options: Options): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json", "x-railbus-csrf": csrf };
  if (options.isNew) headers["if-none-match"] = "*";
  if (body !== undefined) headers["content-type"] = "application/json";
  const sent = body === undefined ? undefined : stringifyExact(body);
  return fetch(address(path), { method, headers, body: sent, signal: options.signal });
}

/** What is about the whole broker, a namespace by its name or the session has one place for all namespaces. */
export function address(path: string): string {
  const isOfBroker = /^(session|connections|clock|namespaces)\b/.test(path);
  return BASE + (isOfBroker ? "" : OF_NAMESPACE) + path;
}

/** Asks the broker for JSON. An error becomes an `ApiError`. */
export async function call<T>(method: string, path: string, body?: unknown, options?: Options): Promise<T> {
  return result(await send(method, path, body, options), options?.isExact);
}

/** Asks for what answers with JSON of its own if it refuses. */
export function post(path: string, body: unknown, signal: AbortSignal): Promise<Response> {
  return send("POST", path, body, { signal });
}

/** The events of a stream, until it ends. A refusal becomes an `ApiError`. */
export async function* stream(path: string, signal: AbortSignal): AsyncGenerator<string> {
  const answer = await send("GET", path, undefined, { signal });
  if (!answer.ok || !answer.body) await result(answer);
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (text + value).split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) yield event.slice(event.indexOf("data: ") + "data: ".length);
  }
}

export function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return call("GET", path, undefined, { signal });
}

/** The message of a number, with all that is known of it; null if it has gone. */
export async function message(path: string, part: string, number: number, signal: AbortSignal): Promise<Message | null> {
  const place = entityPath(path, `/messages?part=${part}&from=${number}&count=1`);
  const { messages } = await call<{ messages: Message[] }>("GET", place, undefined, { signal, isExact: true });
  // A number that is not exact is the one that the pages know.
  return messages.find((message) => Number(message["sequence-number"]) === number) ?? null;
}

async function result<T>(answer: Response, isExact = false): Promise<T> {
  const text = await answer.text();
  let json: unknown;
  try {
    json = isExact ? parseExact(text) : JSON.parse(text);
  } catch {
    throw new ApiError(answer.status, text || answer.statusText);
  }
  if (answer.ok) return json as T;
  throw new ApiError(answer.status, String((json as Json).error ?? text));
}

/** Begins a session with a header's value, or goes on with the one there is. */
export async function signIn(authorization?: string): Promise<Session> {
  const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
  const answer = await fetch(BASE + "session", { method: "POST", headers });
  const session = await result<Session>(answer);
  csrf = session.csrf;
  return session;
}

export async function signOut(): Promise<void> {
  await call("DELETE", "session");
  onSignedOut();
}

/** The header's value for the name and key of a rule. */
export function basic(name: string, key: string): string {
  const bytes = new TextEncoder().encode(`${name}:${key}`);
  return "Basic " + btoa(String.fromCharCode(...bytes));
}

/** The path of an entity in a request. */
export function entityPath(path: string, below = ""): string {
  return "entities/" + path.split("/").map(encodeURIComponent).join("/") + below;
}

/** A request about a namespace by its name. */
export function namespacePath(name: string, below: string): string {
  return `namespaces/${encodeURIComponent(name)}/${below}`;
}

/** The topic of a subscription; the path of any other entity. */
export function topicOf(path: string): string {
  return path.replace(/\/subscriptions\/[^/]*$/i, "");
}

/** The subscriptions of a topic with their counts. */
export async function subscriptionsOf(topic: string, signal?: AbortSignal): Promise<Counts[]> {
  const start = `${topic}/subscriptions/`.toLowerCase();
  const subscriptions: Counts[] = [];
  for (let skip = 0; ; skip += ROWS) {
    const query = new URLSearchParams({ kind: "subscription", search: start, skip: String(skip), count: String(ROWS) });
    const { entities, total } = await get<{ entities: Counts[]; total: number }>(`counts?${queryText(query)}`, signal);
    // What is searched for may stand anywhere in a path.
    subscriptions.push(...entities.filter((one) => one.path.toLowerCase().startsWith(start)));
    if (skip + ROWS >= total) return subscriptions;
  }
}

/** How many messages a purge of a part would delete; their receivers keep what they have locked. */
export async function countPurge(path: string, part: string, filter: string): Promise<number> {
  const body = { part, filter, "dry-run": true };
  return (await call<{ selected: number }>("POST", entityPath(path, "/purge"), body)).selected;
}

/** The parameters of a request. The broker takes a plus for what it is. */
export function queryText(parameters: URLSearchParams): string {
  return parameters.toString().replaceAll("+", "%20");
}

/** A text as a literal of SQL. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
