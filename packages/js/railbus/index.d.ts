/** What a broker is started with. */
export interface Options {
  /** A Service Bus emulator's `Config.json`, or TOML or JSON of Railbus's own shape; or an object of that shape. */
  entities?: string | object;
  /** Any free port unless it is given. */
  port?: number;
  /** Further options of `railbus serve`. */
  arguments?: string[];
}

/** The time of a broker after it was changed. */
export interface Clock {
  now: string;
  offset: string;
  frozen: boolean;
}

/** How a namespace is made. */
export interface NamespaceOptions {
  /** A random one unless it is given. */
  name?: string;
  /** The namespace whose entities it has, `default` unless it is given; `null` for none. */
  like?: string | null;
}

/** Which operations a fault rule is about; the broker documents the members. */
export interface FaultMatch {
  entity?: string;
  operations?: string[];
  client?: string;
  key?: string;
  session?: string;
  "message-id"?: string;
  from?: number;
  until?: number;
  skip?: number;
  every?: number;
  probability?: number;
  seed?: number;
  times?: number;
}

/** What happens to an operation that a fault rule fits. */
export type FaultEffect =
  | { refuse: string }
  | { detach: string }
  | { end: string }
  | { close: string }
  | { disconnect: "before" | "after" }
  | { "delay-ms": number }
  | { "delay-answer-ms": number }
  | { "throttle-per-second": number }
  | { "withhold-credit-ms": number }
  | "expire-token"
  | "lose-lock"
  | "deliver-again";

/** A fault rule and what it did. */
export interface FaultRule {
  name: string;
  match: FaultMatch;
  effect: FaultEffect;
  matched: number;
  injected: number;
}

/** Why a message is not delivered. */
export interface Explanation {
  reasons: { code: string; text: string }[];
}

/** What was kept of a namespace. */
export interface Snapshot {
  name: string;
  created: string;
  entities: number;
  messages: number;
  bytes: number;
}

/** A namespace of a broker: entities, messages, keys and fault rules of its own. */
export interface Namespace {
  readonly name: string;
  /** What the Azure SDKs take. */
  readonly connectionString: string;
  /** Deletes the namespace with all that is in it, and closes its connections. */
  delete(): Promise<void>;
  /** Takes away all messages and fault rules, and makes the entities anew that the namespace was made with. */
  reset(): Promise<void>;
  /** Keeps the entities and messages as they are now, under a name. */
  snapshot(name?: string): Promise<Snapshot>;
  /** Goes back to what was kept, as often as is wanted. Locks are void then, and links are detached. */
  restore(name?: string): Promise<void>;
  /** Lets time pass in this namespace alone, in milliseconds or ISO 8601 (`PT5M`). */
  advance(duration: number | string): Promise<Clock>;
  /** Adds a fault rule. */
  fault(name: string, effect: FaultEffect, match?: FaultMatch): Promise<void>;
  /** The fault rules. */
  faults(): Promise<FaultRule[]>;
  /** Takes all fault rules away. */
  clearFaults(): Promise<void>;
  /** Why messages of an entity, or the one with a sequence number, are not delivered. */
  explain(entity: string, sequence?: number | bigint): Promise<Explanation>;
}

/** A running broker. It ends with this process, also when that is killed. */
export interface Broker {
  /** What the Azure SDKs take. */
  readonly connectionString: string;
  /** Host and port, for AMQP and HTTP. */
  readonly address: string;
  readonly pid: number;
  readonly logSize: number;
  /** Makes a namespace with the entities of this broker and no messages. */
  createNamespace(options?: NamespaceOptions): Promise<Namespace>;
  /** Lets time pass, in milliseconds or ISO 8601 (`PT5M`). */
  advance(duration: number | string): Promise<Clock>;
  /** Stops broker time until it is advanced, or lets it run again. */
  freeze(frozen?: boolean): Promise<Clock>;
  /** What the broker has logged, from the byte `since` on. */
  log(since?: number): string;
  /** Stops the broker; resolves to its exit code. */
  stop(): Promise<number | null>;
}

/** Starts a broker with a temporary store and waits until it is ready. */
export function start(options?: Options): Promise<Broker>;

/** Makes a namespace of the broker at `address`, host and port, which another process may have started. */
export function createNamespace(address: string, options?: NamespaceOptions): Promise<Namespace>;

/** The path of the program: `RAILBUS_BIN`, that of the package of this platform, or one on `PATH`. */
export function findProgram(): string;
