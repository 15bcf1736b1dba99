// Delayed retry: a message waits after a failed delivery, as its receiver or its queue's retry-backoff says.
"use strict";

const assert = require("node:assert/strict");
const { after, before, test } = require("node:test");
const { Queue, connect, message, receiveOne } = require("./support.js");
const { Broker } = require("./virtual-clock.js");

let broker;
let client;

before(async () => {
  broker = await Broker.start("retry.json");
  await broker.freeze();
  client = connect({}, broker.connectionString);
});

after(async () => {
  await client.close();
  await broker.stop();
});

test("an abandoned message waits as its receiver says", async () => {
  const waits = [
    () => ({ "x-opt-delivery-delay": 60_000 }),
    (received) => ({ "x-opt-delivery-time": new Date(received.enqueuedTimeUtc.getTime() + 60_000) }),
  ];
  for (const wait of waits) {
    const queue = new Queue(client, "orders");
    const [failing, behind] = [message("body", { applicationProperties: { kept: "old" } }), message()];
    await queue.send(failing, behind);
    const receiver = queue.receiver();
    const first = await receiveOne(receiver);
    await receiver.abandonMessage(first, { ...wait(first), added: 7 });
    assert.deepEqual((await queue.peek()).map((one) => one.state), ["scheduled", "active"]);
    const other = await receiveOne(receiver);
    assert.equal(other.messageId, behind.messageId);
    await receiver.completeMessage(other);
    await broker.advance("PT1M");
    const again = await receiveOne(receiver);
    assert.equal(again.messageId, failing.messageId);
    assert.ok(again.sequenceNumber.equals(first.sequenceNumber));
    assert.equal(again.deliveryCount, 1);
    assert.deepEqual(again.applicationProperties, { kept: "old", added: 7 });
    await receiver.completeMessage(again);
    await receiver.close();
  }
});

test("the wait grows with each failed delivery", async () => {
  const queue = new Queue(client, "backoff");
  await queue.send(message());
  const receiver = queue.receiver();
  for (const wait of ["PT10S", "PT30S", "PT1M"]) {
    await receiver.abandonMessage(await receiveOne(receiver));
    assert.equal((await queue.peek())[0].state, "scheduled");
    await broker.advance(wait);
  }
  const last = await receiveOne(receiver);
  assert.equal(last.deliveryCount, 3);
  await receiver.completeMessage(last);
  assert.ok(await queue.isEmpty());
});

test("a delay that is no number is refused and the message stays locked", async () => {
  const queue = new Queue(client, "orders");
  await queue.send(message());
  const receiver = queue.receiver();
  const received = await receiveOne(receiver);
  await assert.rejects(receiver.abandonMessage(received, { "x-opt-delivery-delay": "soon" }), /x-opt-delivery-delay/);
  assert.deepEqual((await queue.peek()).map((one) => one.deliveryCount), [0]);
  // The SDK settles a message once, so its lock is to run out.
  await broker.advance("PT5M");
  await receiver.completeMessage(await receiveOne(receiver));
  assert.ok(await queue.isEmpty());
});
