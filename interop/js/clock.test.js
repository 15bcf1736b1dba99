// The virtual clock: a day's time to live and a lock of five minutes, without sleeping.
"use strict";

const assert = require("node:assert/strict");
const { after, before, test } = require("node:test");
const { Queue, connect, message, receiveOne } = require("./support.js");
const { Broker } = require("./virtual-clock.js");

let broker;
let client;
let queue;

before(async () => {
  broker = await Broker.start();
  client = connect({}, broker.connectionString);
  queue = new Queue(client, "orders");
});

after(async () => {
  await client.close();
  await broker.stop();
});

test("a message expires when its day has passed", async () => {
  const sent = message();
  await queue.send(sent);
  await broker.advance("P1D");
  const dead = await queue.takeDead();
  assert.equal(dead.messageId, sent.messageId);
  assert.equal(dead.deadLetterReason, "TTLExpiredException");
});

test("a lock is lost when its five minutes have passed", async () => {
  const sent = message();
  await queue.send(sent);
  const receiver = queue.receiver();
  const late = await receiveOne(receiver);
  await broker.advance("PT5M");
  await assert.rejects(receiver.completeMessage(late), { code: "MessageLockLost" });
  const again = await receiveOne(receiver);
  assert.equal(again.messageId, sent.messageId);
  assert.equal(again.deliveryCount, 1);
  await receiver.completeMessage(again);
});

test("a lock that was renewed lasts from its renewal", async () => {
  await queue.send(message());
  const receiver = queue.receiver();
  const held = await receiveOne(receiver);
  await broker.advance("PT4M");
  await receiver.renewMessageLock(held);
  await broker.advance("PT4M");
  await receiver.completeMessage(held);
  assert.ok(await queue.isEmpty());
});
