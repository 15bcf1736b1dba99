// Receiving in both modes, browsing, streaming, and several receivers on one queue.
"use strict";

const assert = require("node:assert/strict");
const Long = require("long");
const { Queue, connect, eventually, idsOf, message, receive, receiveOne, test } = require("./support.js");

test("peek-lock hides a message until it is completed", "plain", async (queue) => {
  const sent = message();
  await queue.send(sent);
  const holder = queue.receiver();
  const received = await receiveOne(holder);
  assert.equal(received.messageId, sent.messageId);
  assert.match(received.lockToken, /^[0-9a-f-]{36}$/);
  assert.ok(received.lockedUntilUtc.getTime() > Date.now());
  assert.deepEqual(await queue.receiver().receiveMessages(1, { maxWaitTimeInMs: 500 }), []);
  await holder.completeMessage(received);
  assert.ok(await queue.isEmpty());
});

test("receive-and-delete removes at delivery", "plain", async (queue) => {
  const sent = message();
  await queue.send(sent);
  const received = await receiveOne(queue.receiver({ receiveMode: "receiveAndDelete" }));
  assert.equal(received.messageId, sent.messageId);
  assert.equal(received.lockedUntilUtc, undefined);
  assert.ok(await queue.isEmpty());
});

test("peek shows messages in order and takes nothing", "plain", async (queue) => {
  const sent = Array.from({ length: 5 }, (_, number) => message(`number ${number}`));
  await queue.send(...sent);
  const receiver = queue.receiver();
  const first = await receiver.peekMessages(3, { fromSequenceNumber: Long.ONE });
  const rest = await receiver.peekMessages(10);
  assert.deepEqual(idsOf([...first, ...rest]), idsOf(sent));
  const [again] = await receiver.peekMessages(1, { fromSequenceNumber: first[2].sequenceNumber });
  assert.equal(again.messageId, sent[2].messageId);
  // Nobody holds them, so what is said of a lock is past.
  assert.ok(first.every((one) => one.deliveryCount === 0 && one.state === "active" && one.lockedUntilUtc < new Date(0)));
  const received = await queue.take(5);
  assert.deepEqual(idsOf(received), idsOf(sent));
  assert.ok(received.every((one) => one.deliveryCount === 0));
});

test("peek shows a message that is locked", "plain", async (queue) => {
  const sent = message();
  await queue.send(sent);
  const receiver = queue.receiver();
  const received = await receiveOne(receiver);
  assert.deepEqual(idsOf(await queue.peek()), [sent.messageId]);
  await receiver.completeMessage(received);
});

test("a peek without bodies shows all but them", "plain", async (queue) => {
  const sent = message("x".repeat(10_000), { subject: "large", applicationProperties: { colour: "red" } });
  await queue.send(sent);
  const receiver = queue.receiver();
  const [bare] = await receiver.peekMessages(1, { fromSequenceNumber: Long.ONE, omitMessageBody: true });
  assert.equal(bare.body, undefined);
  assert.equal(bare.messageId, sent.messageId);
  assert.equal(bare.subject, "large");
  assert.deepEqual(bare.applicationProperties, { colour: "red" });
  const [whole] = await receiver.peekMessages(1, { fromSequenceNumber: Long.ONE });
  assert.equal(whole.body, sent.body);
});

test("peek of an empty queue is empty", "plain", async (queue) => {
  assert.deepEqual(await queue.peek(), []);
});

test("receiving from an empty queue ends empty and leaves the link usable", "plain", async (queue) => {
  const receiver = queue.receiver();
  assert.deepEqual(await receiver.receiveMessages(10, { maxWaitTimeInMs: 300 }), []);
  const sent = message();
  await queue.send(sent);
  const received = await receiveOne(receiver);
  assert.equal(received.messageId, sent.messageId);
  await receiver.completeMessage(received);
});

test("a subscribed handler gets every message, completed by the SDK", "plain", async (queue) => {
  const sent = Array.from({ length: 20 }, () => message());
  const handled = [];
  const errors = [];
  const receiver = queue.receiver();
  const subscription = receiver.subscribe(
    {
      processMessage: async (one) => handled.push(one.messageId),
      processError: async ({ error }) => errors.push(error),
    },
    { maxConcurrentCalls: 4 },
  );
  await queue.send(...sent);
  await eventually(() => handled.length >= 20, "the handling of all messages");
  await subscription.close();
  assert.deepEqual(errors, []);
  assert.deepEqual(handled.sort(), idsOf(sent).sort());
  await eventually(() => queue.isEmpty(), "the removal of all messages");
});

test("competing receivers get disjoint messages", "compete", async (queue, client) => {
  const sent = Array.from({ length: 100 }, () => message());
  await client.createSender(queue.name).sendMessages(sent);
  const shares = await Promise.all(Array.from({ length: 4 }, () => completeUntilEmpty(queue.name)));
  assert.deepEqual(shares.flat().sort(), idsOf(sent).sort());
  assert.ok(await queue.isEmpty());
});

/** Works like a consumer with a connection of its own until nothing comes for a second. */
async function completeUntilEmpty(name) {
  const client = connect();
  const receiver = new Queue(client, name).receiver();
  const done = [];
  for (;;) {
    const batch = await receiver.receiveMessages(5, { maxWaitTimeInMs: 1000 });
    if (batch.length === 0) break;
    await Promise.all(batch.map((one) => receiver.completeMessage(one)));
    done.push(...idsOf(batch));
  }
  await client.close();
  return done;
}

test("a receiver that closes with undelivered credit loses nothing", "plain", async (queue) => {
  const receiver = queue.receiver();
  const waiting = receiver.receiveMessages(10, { maxWaitTimeInMs: 300 });
  await waiting;
  await receiver.close();
  await queue.send(message(), message());
  const received = await receive(queue.receiver({ receiveMode: "receiveAndDelete" }), 2);
  assert.ok(received.every((one) => one.deliveryCount === 0));
});
