// A `test` that gets a broker of its own, so its queues are empty and its clock is the test's to move.
"use strict";

const runner = require("node:test");
const { Queue, connect } = require("./support.js");
const { Broker } = require("./virtual-clock.js");

/** Hands over the queue `name` of clock.json, or of another file of entities, and what belongs to it. */
function testWithBroker(testName, name, body, entities) {
  runner.test(testName, { timeout: 120_000 }, async () => {
    const broker = await Broker.start(entities);
    const client = connect({ retryOptions: { maxRetries: 0, timeoutInMs: 5000 } }, broker.connectionString);
    try {
      await body(new Queue(client, name), { broker, client });
    } finally {
      await client.close();
      await broker.stop();
    }
  });
}

/** A promise and the function that fulfils it, for a handler that a test leads. */
function signal() {
  let fulfil;
  const promise = new Promise((resolve) => {
    fulfil = resolve;
  });
  return { promise, fulfil };
}

module.exports = { signal, testWithBroker };
