// What every test file needs: a client, a queue with the steps that tests repeat, and a `test` that gets
// both and cleans up. Waits are on what can be observed and end with an error after `PATIENCE_MS`.
"use strict";

const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const runner = require("node:test");
const { setTimeout: delay } = require("node:timers/promises");
const { ServiceBusClient } = require("@azure/service-bus");
const Long = require("long");

const PREFIX = "js";
const PATIENCE_MS = 30_000;
const TEST_TIMEOUT_MS = 120_000;
const connectionString = process.env.RAILBUS_CONNECTION_STRING;

/** A message with an id that no other test or run has used. */
function message(body = "body", more = {}) {
  return { body, messageId: randomUUID(), ...more };
}

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

/** Waits until the wall clock is past `moment`, a time that the broker has announced. */
async function waitUntilPassed(moment) {
  while (Date.now() <= moment.getTime()) {
    await delay(moment.getTime() - Date.now() + 10);
  }
}

/** Receives exactly `count` messages, in as many calls as the SDK needs. */
async function receive(receiver, count = 1) {
  const received = [];
  const deadline = Date.now() + PATIENCE_MS;
  while (received.length < count) {
    assert.ok(Date.now() < deadline, `${received.length} of ${count} messages within ${PATIENCE_MS} ms`);
    received.push(...(await receiver.receiveMessages(count - received.length, { maxWaitTimeInMs: 5000 })));
  }
  return received;
}

async function receiveOne(receiver) {
  const [received] = await receive(receiver);
  return received;
}

/** One queue of the broker, seen through a client of the SDK. */
class Queue {
  constructor(client, name) {
    this.client = client;
    this.name = name;
  }

  receiver(options = {}) {
    return this.client.createReceiver(this.name, options);
  }

  async send(...messages) {
    const sender = this.client.createSender(this.name);
    for (const one of messages) await sender.sendMessages(one);
    await sender.close();
  }

  /** Receives exactly `count` messages in receive-and-delete. */
  async take(count = 1, options = {}) {
    const receiver = this.receiver({ receiveMode: "receiveAndDelete", ...options });
    const received = await receive(receiver, count);
    await receiver.close();
    return received;
  }

  async takeDead() {
    const [dead] = await this.take(1, { subQueueType: "deadLetter" });
    return dead;
  }

  async peek(options = {}) {
    const receiver = this.receiver(options);
    const peeked = await receiver.peekMessages(250, { fromSequenceNumber: Long.ONE });
    await receiver.close();
    return peeked;
  }

  peekDead() {
    return this.peek({ subQueueType: "deadLetter" });
  }

  async isEmpty() {
    return (await this.peek()).length === 0;
  }

  /** Removes everything, also what an interrupted run left locked, deferred or dead-lettered. */
  async clear() {
    for (const subQueueType of [undefined, "deadLetter"]) {
      const receiver = this.receiver({ receiveMode: "receiveAndDelete", subQueueType });
      for (;;) {
        const left = await receiver.peekMessages(100, { fromSequenceNumber: Long.ONE });
        if (left.length === 0) break;
        const deferred = left.filter((one) => one.state === "deferred").map((one) => one.sequenceNumber);
        if (deferred.length > 0) await receiver.receiveDeferredMessages(deferred);
        else await receiver.receiveMessages(100, { maxWaitTimeInMs: 1000 });
      }
      await receiver.close();
    }
  }
}

function connect(options = {}, text = connectionString) {
  return new ServiceBusClient(text, options);
}

/** A test that gets the queue `js-<suffix>`, emptied, and a client that is closed at the end. */
function test(name, suffix, body) {
  runner.test(name, { timeout: TEST_TIMEOUT_MS }, async () => {
    const client = connect();
    try {
      const queue = new Queue(client, `${PREFIX}-${suffix}`);
      await queue.clear();
      await body(queue, client);
    } finally {
      await client.close();
    }
  });
}

const idsOf = (messages) => messages.map((one) => one.messageId);

module.exports = {
  PREFIX,
  Queue,
  connect,
  connectionString,
  eventually,
  idsOf,
  message,
  receive,
  receiveOne,
  test,
  waitUntilPassed,
};
