// One namespace of a broker: entities, messages, keys and fault rules of its own.
"use strict";

const { randomUUID } = require("node:crypto");

const KEY = /SharedAccessKeyName=([^;]+);SharedAccessKey=([^;]+)/;

/** Milliseconds in ISO 8601; text is left as it is. */
function iso(duration) {
  return typeof duration === "number" ? `PT${(duration / 1000).toFixed(3)}S` : duration;
}

/** What the broker at `address` answers to a request under `/$railbus/`. */
async function request(address, method, path, body, headers) {
  const url = `http://${address}/$railbus/${path}`;
  const answer = await fetch(url, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

/** A namespace. */
class Namespace {
  #address;

  static async create(address, { name = `test-${randomUUID()}`, like = "default" } = {}) {
    const path = `namespaces/${encodeURIComponent(name)}`;
    const answer = await request(address, "PUT", path, like === null ? {} : { like });
    const connectionString = answer["connection-string"];
    if (connectionString === undefined) throw new Error(`the namespace ${name} exists already`);
    return new Namespace(address, name, connectionString);
  }

  constructor(address, name, connectionString) {
    this.#address = address;
    this.name = name;
    this.connectionString = connectionString;
  }

  /** Deletes the namespace with all that is in it, and closes its connections. */
  async delete() {
    await this.#request("DELETE");
  }

  /** Takes away all messages and fault rules, and makes the entities anew that the namespace was made with. */
  async reset() {
    await this.#request("POST", "/reset");
  }

  /** Keeps the entities and messages as they are now, under a name; tells how many there are. */
  snapshot(name = "snapshot") {
    return this.#request("POST", "/snapshots", { name });
  }

  /** Goes back to what was kept, as often as is wanted. Locks are void then, and links are detached. */
  async restore(name = "snapshot") {
    await this.#request("POST", "/restore", { snapshot: name });
  }

  /**
   * Lets time pass in this namespace alone, in milliseconds or ISO 8601 (`PT5M`). What becomes due has happened when
   * it resolves.
   */
  advance(duration) {
    return this.#request("POST", "/clock", { advance: iso(duration) });
  }

  /** Adds a fault rule: `fault("busy", { refuse: "server-busy" }, { entity: "orders", times: 1 })`. */
  async fault(name, effect, match = {}) {
    await this.#request("POST", "/faults", { name, effect, match });
  }

  /** The fault rules, each with how many operations it has `matched` and how many failed by it (`injected`). */
  async faults() {
    return (await this.#request("GET", "/faults")).faults;
  }

  /** Takes all fault rules away. */
  async clearFaults() {
    await this.#request("DELETE", "/faults");
  }

  /** Why messages of an entity, or the one with a sequence number, are not delivered. */
  explain(entity, sequence) {
    // The name of the key chooses the namespace.
    const key = KEY.exec(this.connectionString).slice(1).join(":");
    const headers = { Authorization: `Basic ${Buffer.from(key).toString("base64")}` };
    const query = sequence === undefined ? "" : `?sequence=${sequence}`;
    const path = entity.split("/").map(encodeURIComponent).join("/");
    return request(this.#address, "GET", `entities/${path}/explain${query}`, undefined, headers);
  }

  #request(method, path = "", body = undefined) {
    return request(this.#address, method, `namespaces/${this.name}${path}`, body);
  }
}

module.exports = { Namespace, iso, request };
