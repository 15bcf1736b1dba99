// Forwarding: messages and dead letters go on to another queue by themselves.
"use strict";

const assert = require("node:assert/strict");
const { message, receiveOne, test } = require("./support.js");

test("a message arrives where its queue forwards to", "target", async (queue, client) => {
  const sent = message("hello");
  await client.createSender("js-forward").sendMessages(sent);
  const [received] = await queue.take();
  assert.equal(received.messageId, sent.messageId);
  assert.equal(received.body, "hello");
  assert.equal(received.deliveryCount, 0);
  assert.ok(received.enqueuedSequenceNumber > 0);
});

test("a dead letter arrives with its reason and its source", "target", async (queue, client) => {
  const sent = message("doomed");
  await client.createSender("js-mortal").sendMessages(sent);
  const receiver = client.createReceiver("js-mortal");
  const received = await receiveOne(receiver);
  await receiver.deadLetterMessage(received, { deadLetterReason: "broken" });
  const [dead] = await queue.take();
  assert.equal(dead.messageId, sent.messageId);
  assert.equal(dead.deadLetterReason, "broken");
  assert.equal(dead.deadLetterSource, "js-mortal");
});

test("a receiver where messages go on is refused", "target", async (queue, client) => {
  await assert.rejects(client.createReceiver("js-forward").receiveMessages(1), /auto-forwarding/);
});
