// A broker of one's own whose clock a test moves. What is here is all that a project needs to copy.
"use strict";

const { spawn } = require("node:child_process");
const { once } = require("node:events");
const { join } = require("node:path");
const { createInterface } = require("node:readline");

const READY = /^railbus ready listen=([^, ]+).* connection-string="([^"]+)"$/;

/** `railbus serve --ephemeral --virtual-clock`. */
class Broker {
  static async start(file = "clock.json", more = []) {
    const options = ["--ephemeral", "--virtual-clock", "--listen", "127.0.0.1:0", ...more];
    const entities = join(__dirname, "..", file);
    const broker = new Broker();
    broker.process = spawn(process.env.RAILBUS_BIN, ["serve", ...options, "--entities", entities], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    const [line] = await once(createInterface(broker.process.stdout), "line");
    [, broker.address, broker.connectionString] = READY.exec(line);
    return broker;
  }

  /** Lets time pass, such as `PT5M`; resolves when all that became due has happened. */
  advance(duration) {
    return this.setClock({ advance: duration });
  }

  /** Stops the clock until it is advanced, so that a lock lasts however slow the test is. */
  freeze() {
    return this.setClock({ freeze: true });
  }

  async setClock(change) {
    const answer = await fetch(`http://${this.address}/$railbus/clock`, {
      method: "POST",
      body: JSON.stringify(change),
    });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  }

  async stop() {
    const ended = once(this.process, "exit");
    this.process.kill();
    await ended;
  }
}

module.exports = { Broker };
