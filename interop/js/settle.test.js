// Settling: complete, abandon, dead-letter, defer; the delivery count and the limit of deliveries.
// This SDK shows the count of failed deliveries before the present one (docs/spec/amqp.md#4.4).
"use strict";

const assert = require("node:assert/strict");
const Long = require("long");
const { message, receiveOne, test } = require("./support.js");

test("a completed message never comes back", "plain", async (queue) => {
  await queue.send(message());
  const receiver = queue.receiver();
  await receiver.completeMessage(await receiveOne(receiver));
  assert.ok(await queue.isEmpty());
  assert.deepEqual(await queue.peekDead(), []);
});

test("an abandoned message comes back with its count raised and its properties modified", "plain", async (queue) => {
  const sent = message("body", { applicationProperties: { kept: "old", changed: "old" } });
  await queue.send(sent);
  const receiver = queue.receiver();
  const first = await receiveOne(receiver);
  assert.equal(first.deliveryCount, 0);
  await receiver.abandonMessage(first, { changed: "new", added: 7 });
  const second = await receiveOne(receiver);
  assert.equal(second.messageId, sent.messageId);
  assert.ok(second.sequenceNumber.equals(first.sequenceNumber));
  assert.equal(second.deliveryCount, 1);
  assert.notEqual(second.lockToken, first.lockToken);
  assert.deepEqual(second.applicationProperties, { kept: "old", changed: "new", added: 7 });
  await receiver.completeMessage(second);
});

test("the dead-letter queue tells reason, description and modified properties", "plain", async (queue) => {
  const sent = message("bad", { applicationProperties: { kept: "yes" } });
  await queue.send(sent);
  const receiver = queue.receiver();
  const received = await receiveOne(receiver);
  await receiver.deadLetterMessage(received, {
    deadLetterReason: "Unreadable",
    deadLetterErrorDescription: "The body is not JSON.",
    stage: "parse",
    attempts: 2,
  });
  const dead = await queue.takeDead();
  assert.equal(dead.messageId, sent.messageId);
  assert.ok(dead.sequenceNumber.equals(received.sequenceNumber));
  assert.equal(dead.deadLetterReason, "Unreadable");
  assert.equal(dead.deadLetterErrorDescription, "The body is not JSON.");
  assert.deepEqual(dead.applicationProperties, {
    kept: "yes",
    stage: "parse",
    attempts: 2,
    DeadLetterReason: "Unreadable",
    DeadLetterErrorDescription: "The body is not JSON.",
  });
  assert.ok(await queue.isEmpty());
});

test("a message can be dead-lettered without a reason", "plain", async (queue) => {
  const sent = message();
  await queue.send(sent);
  const receiver = queue.receiver();
  await receiver.deadLetterMessage(await receiveOne(receiver));
  const dead = await queue.takeDead();
  assert.equal(dead.messageId, sent.messageId);
  assert.ok(!dead.deadLetterReason);
});

test("a dead letter is received in peek-lock and completed", "plain", async (queue) => {
  await queue.send(message());
  const receiver = queue.receiver();
  await receiver.deadLetterMessage(await receiveOne(receiver));
  const deadReceiver = queue.receiver({ subQueueType: "deadLetter" });
  await deadReceiver.completeMessage(await receiveOne(deadReceiver));
  assert.deepEqual(await queue.peekDead(), []);
});

test("a deferred message comes only by its number", "plain", async (queue) => {
  const sent = message("later");
  await queue.send(sent);
  const receiver = queue.receiver();
  const received = await receiveOne(receiver);
  await receiver.deferMessage(received, { why: "not yet" });
  assert.deepEqual((await queue.peek()).map((one) => one.state), ["deferred"]);
  assert.deepEqual(await receiver.receiveMessages(1, { maxWaitTimeInMs: 500 }), []);
  const [deferred] = await receiver.receiveDeferredMessages(received.sequenceNumber);
  assert.equal(deferred.messageId, sent.messageId);
  assert.equal(deferred.deliveryCount, 1);
  assert.equal(deferred.applicationProperties.why, "not yet");
  await receiver.completeMessage(deferred);
  assert.ok(await queue.isEmpty());
});

test("a deferred message can be abandoned and dead-lettered", "plain", async (queue) => {
  await queue.send(message());
  const receiver = queue.receiver();
  const { sequenceNumber } = await deferOne(receiver);
  const [first] = await receiver.receiveDeferredMessages(sequenceNumber);
  await receiver.abandonMessage(first);
  assert.deepEqual((await queue.peek()).map((one) => one.state), ["deferred"]);
  const [second] = await receiver.receiveDeferredMessages(sequenceNumber);
  await receiver.deadLetterMessage(second, {
    deadLetterReason: "Deferred too long",
    deadLetterErrorDescription: "Given up.",
  });
  const dead = await queue.takeDead();
  assert.deepEqual([dead.deadLetterReason, dead.deadLetterErrorDescription], ["Deferred too long", "Given up."]);
});

async function deferOne(receiver) {
  const received = await receiveOne(receiver);
  await receiver.deferMessage(received);
  return received;
}

test("a defer raises the delivery count", "plain", async (queue) => {
  await queue.send(message());
  const receiver = queue.receiver();
  const first = await receiveOne(receiver);
  await receiver.deferMessage(first);
  const counts = [first.deliveryCount, (await queue.peek())[0].deliveryCount];
  for (const settle of ["deferMessage", "abandonMessage"]) {
    const [deferred] = await receiver.receiveDeferredMessages(first.sequenceNumber);
    counts.push(deferred.deliveryCount);
    await receiver[settle](deferred);
  }
  // The abandon is the third delivery that ended without removal, the maximum of this queue.
  const dead = await queue.takeDead();
  counts.push(dead.deliveryCount);
  assert.deepEqual(counts, [0, 1, 1, 2, 3]);
  assert.equal(dead.deadLetterReason, "MaxDeliveryCountExceeded");
});

test("a defer does not dead-letter a message, however often it was delivered", "plain", async (queue) => {
  await queue.send(message());
  const receiver = queue.receiver();
  const { sequenceNumber } = await deferOne(receiver);
  for (const expected of [1, 2, 3, 4]) {
    const [deferred] = await receiver.receiveDeferredMessages(sequenceNumber);
    assert.equal(deferred.deliveryCount, expected);
    await receiver.deferMessage(deferred);
  }
  assert.deepEqual(await queue.peekDead(), []);
});

test("dead-lettering does not raise the delivery count", "plain", async (queue) => {
  await queue.send(message("at once"), message("deferred"));
  const receiver = queue.receiver();
  await receiver.deadLetterMessage(await receiveOne(receiver));
  const { sequenceNumber } = await deferOne(receiver);
  await receiver.deadLetterMessage((await receiver.receiveDeferredMessages(sequenceNumber))[0]);
  const dead = await queue.peekDead();
  assert.deepEqual(dead.map((one) => [one.body, one.deliveryCount]), [["at once", 0], ["deferred", 1]]);
});

test("an unknown deferred number is not found", "plain", async (queue) => {
  await assert.rejects(queue.receiver().receiveDeferredMessages(Long.fromNumber(2 ** 40)), { code: "MessageNotFound" });
});

test("three abandoned deliveries dead-letter a message", "plain", async (queue) => {
  const sent = message();
  await queue.send(sent);
  const receiver = queue.receiver();
  for (const expected of [0, 1, 2]) {
    const received = await receiveOne(receiver);
    assert.equal(received.deliveryCount, expected);
    await receiver.abandonMessage(received);
  }
  const dead = await queue.takeDead();
  assert.equal(dead.messageId, sent.messageId);
  assert.equal(dead.deadLetterReason, "MaxDeliveryCountExceeded");
  assert.equal(dead.deadLetterErrorDescription, "Message could not be consumed after 3 delivery attempts.");
  assert.ok(await queue.isEmpty());
});
