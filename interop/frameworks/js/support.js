// What every test file needs: entities of a test's own, made by the SDK's administration client and removed
// at the end. Waits are on what can be observed and end with an error after `PATIENCE_MS`.
"use strict";

const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const runner = require("node:test");
const { setTimeout: delay } = require("node:timers/promises");
const { ServiceBusAdministrationClient } = require("@azure/service-bus");

const PATIENCE_MS = 30_000;
const TEST_TIMEOUT_MS = 120_000;
const connectionString = process.env.RAILBUS_CONNECTION_STRING;
const administration = new ServiceBusAdministrationClient(connectionString);

/** How a generic AMQP 1.0 client reaches the broker. */
const address = {
  host: process.env.RAILBUS_HOST,
  port: Number(process.env.RAILBUS_PORT),
  username: "RootManageSharedAccessKey",
  password: "SAS_KEY_VALUE",
  reconnect: false,
};

/** Asks `condition` until it returns something true, and returns that. */
async function eventually(condition, what) {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const result = await condition();
    if (result) return result;
    assert.ok(Date.now() < deadline, `${what} did not happen within ${PATIENCE_MS} ms`);
    await delay(50);
  }
}

/** How many messages a queue has, by state. */
async function counts(queue) {
  const { activeMessageCount, deadLetterMessageCount } = await administration.getQueueRuntimeProperties(queue);
  return { active: activeMessageCount, dead: deadLetterMessageCount };
}

/** Has the broker close the connections of a container, as an operator does. */
async function closeConnection(container) {
  const connections = `http://${address.host}:${address.port}/$railbus/connections`;
  const listed = await (await fetch(`${connections}?count=100`)).json();
  const own = listed.connections.filter((connection) => connection["container-id"] === container);
  assert.equal(own.length, 1);
  const closed = await fetch(`${connections}/${own[0].id}`, { method: "DELETE" });
  assert.equal(closed.status, 202);
}

/** Makes entities whose names no other test or run has used, and remembers them. */
class Entities {
  made = [];

  async queue(options = {}, name = `queue-${randomUUID().slice(0, 12)}`) {
    await administration.createQueue(name, { lockDuration: "PT30S", maxDeliveryCount: 3, ...options });
    this.made.push(() => administration.deleteQueue(name));
    return name;
  }

  /** A topic with the subscription `all`. */
  async topic() {
    const name = `topic-${randomUUID().slice(0, 12)}`;
    await administration.createTopic(name);
    await administration.createSubscription(name, "all");
    this.made.push(() => administration.deleteTopic(name));
    return name;
  }

  async remove() {
    for (const remove of this.made) await remove();
  }
}

/** A test that may make entities. */
function test(name, body) {
  runner.test(name, { timeout: TEST_TIMEOUT_MS }, async () => {
    const entities = new Entities();
    try {
      await body(entities);
    } finally {
      await entities.remove();
    }
  });
}

module.exports = { address, closeConnection, connectionString, counts, eventually, test };
