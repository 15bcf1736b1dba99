// A Railbus broker for the time of a test: a process of its own that ends with this one.
"use strict";

const { spawn } = require("node:child_process");
const { once } = require("node:events");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { createInterface } = require("node:readline");
const { iso, Namespace, request } = require("./namespace.js");
const { findProgram } = require("./program.js");

const READY = /^railbus ready listen=([^, ]+).* connection-string="([^"]+)"$/;
// The settings of a broker are what `start` is called with, whatever is configured on the machine.
const IGNORED_VARIABLES = /^(RAILBUS_.*|CONFIG_PATH|EMULATOR_HTTP_PORT)$/;

/** A running broker. */
class Broker {
  #process;
  #ended;
  #log;

  static async start({ entities, port = 0, arguments: more = [] } = {}) {
    const temporary = fs.mkdtempSync(path.join(os.tmpdir(), "railbus-"));
    try {
      const broker = new Broker(fs.openSync(path.join(temporary, "log"), "w+"));
      await broker.#start(entitiesFile(entities, temporary), port, more);
      return broker;
    } finally {
      // The log has no name any more, so nothing is left of it.
      fs.rmSync(temporary, { recursive: true });
    }
  }

  constructor(log) {
    this.#log = log;
  }

  async #start(entities, port, more) {
    const options = ["--ephemeral", "--virtual-clock", "--exit-on-stdin-close"];
    options.push("--config", os.devNull, "--listen", `127.0.0.1:${port}`);
    if (entities !== undefined) options.push("--entities", entities);
    const environment = Object.entries(process.env).filter(([name]) => !IGNORED_VARIABLES.test(name));
    this.#process = spawn(findProgram(), ["serve", ...options, ...more], {
      stdio: ["pipe", "pipe", this.#log],
      env: Object.fromEntries(environment),
      // Ctrl-C is for the tests, which then stop their brokers.
      detached: true,
    });
    this.#ended = new Promise((resolve, reject) => {
      this.#process.once("exit", resolve);
      this.#process.once("error", reject);
    });
    const lines = createInterface(this.#process.stdout);
    const [line] = await Promise.race([once(lines, "line"), this.#endedEarly()]);
    const ready = READY.exec(line);
    if (!ready) throw new Error(`the ready line of railbus is not understood: ${line}`);
    [, this.address, this.connectionString] = ready;
    lines.close();
    this.#letGo();
  }

  async #endedEarly() {
    let code;
    try {
      code = await this.#ended;
    } catch (error) {
      throw new Error(`${this.#process.spawnfile} cannot be started: ${error.code}`, { cause: error });
    }
    throw new Error(`railbus ended with exit code ${code} before it was ready:\n${this.log()}`);
  }

  /** A broker that is not stopped does not keep this process alive, and ends with it. */
  #letGo() {
    this.#process.unref();
    this.#process.stdin.unref();
    this.#process.stdout.unref();
  }

  /** Process id of the broker. */
  get pid() {
    return this.#process.pid;
  }

  /** Stops the broker; resolves to its exit code, which is 0 unless something went wrong. */
  async stop() {
    this.#process.ref();
    this.#process.stdin.end();
    return this.#ended;
  }

  /** Makes a namespace with the entities of this broker and no messages. */
  createNamespace(options) {
    return Namespace.create(this.address, options);
  }

  /** Lets time pass, in milliseconds or ISO 8601 (`PT5M`). What becomes due has happened when it resolves. */
  advance(duration) {
    return this.#setClock({ advance: iso(duration) });
  }

  /** Stops broker time until it is advanced, or lets it run again. */
  freeze(frozen = true) {
    return this.#setClock({ freeze: frozen });
  }

  /** What the broker has logged, from the byte `since` on. `RUST_LOG` says how much that is. */
  log(since = 0) {
    const buffer = Buffer.alloc(Math.max(this.logSize - since, 0));
    fs.readSync(this.#log, buffer, 0, buffer.length, since);
    return buffer.toString();
  }

  /** The bytes that the broker has logged, for `log(since)`. */
  get logSize() {
    return fs.fstatSync(this.#log).size;
  }

  #setClock(change) {
    return request(this.address, "POST", "clock", change);
  }
}

/** The file of `entities`, which is written to `folder` if they are an object. */
function entitiesFile(entities, folder) {
  if (typeof entities !== "object") return entities;
  const file = path.join(folder, "entities.json");
  fs.writeFileSync(file, JSON.stringify(entities));
  return file;
}

exports.start = (options) => Broker.start(options);
exports.createNamespace = (address, options) => Namespace.create(address, options);
exports.Broker = Broker;
exports.Namespace = Namespace;
exports.findProgram = findProgram;
