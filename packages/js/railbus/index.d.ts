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

/** A running broker. It ends with this process, also when that is killed. */
export interface Broker {
  /** What the Azure SDKs take. */
  readonly connectionString: string;
  /** Host and port, for AMQP and HTTP. */
  readonly address: string;
  readonly pid: number;
  readonly logSize: number;
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

/** The path of the program: `RAILBUS_BIN`, that of the package of this platform, or one on `PATH`. */
export function findProgram(): string;
