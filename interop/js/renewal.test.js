// Locks that the SDK renews by itself, of messages and of sessions, in handlers and beside them.
// The clock stands still, so that a lock lasts however slow the SDK is; time passes where a test lets it.
"use strict";

const assert = require("node:assert/strict");
const { eventually, message, receive, receiveOne } = require("./support.js");
const { signal, testWithBroker } = require("./own-broker.js");

const MINUTE_MS = 60_000;
const renewing = { maxAutoLockRenewalDurationInMs: MINUTE_MS };

testWithBroker("a subscribed handler keeps the lock of its message", "brief", async (queue, { broker }) => {
  await broker.freeze();
  await queue.send(message());
  const [started, released] = [signal(), signal()];
  const errors = [];
  const subscription = queue.receiver(renewing).subscribe({
    processMessage: async (one) => {
      started.fulfil(one);
      await released.promise;
    },
    processError: async ({ error }) => errors.push(error),
  });
  const held = await started.promise;
  const end = held.lockedUntilUtc;
  await broker.advance("PT4S");
  await eventually(() => held.lockedUntilUtc > end, "the renewal");
  await broker.advance("PT4S");
  released.fulfil();
  await eventually(() => queue.isEmpty(), "the removal of the message");
  await subscription.close();
  assert.deepEqual(errors, []);
});

testWithBroker("a received message keeps its lock", "brief", async (queue, { broker }) => {
  await broker.freeze();
  await queue.send(message());
  const receiver = queue.receiver(renewing);
  const held = await receiveOne(receiver);
  const end = held.lockedUntilUtc;
  await broker.advance("PT4S");
  await eventually(() => held.lockedUntilUtc > end, "the renewal");
  await broker.advance("PT4S");
  await receiver.completeMessage(held);
  assert.ok(await queue.isEmpty());
});

testWithBroker("many locks are renewed at the same time and settle all messages", "brief", async (queue, { broker, client }) => {
  await broker.freeze();
  const sent = Array.from({ length: 50 }, (_, number) => message(number));
  await client.createSender(queue.name).sendMessages(sent);
  const receiver = queue.receiver();
  const held = await receive(receiver, sent.length);
  for (let round = 0; round < 3; round += 1) {
    await broker.advance("PT4S");
    const ends = await Promise.all(held.map((one) => receiver.renewMessageLock(one)));
    assert.ok(ends.every((end) => end.getTime() > Date.now()));
  }
  await Promise.all(held.map((one) => receiver.completeMessage(one)));
  assert.ok(await queue.isEmpty());
});

testWithBroker("a session receiver keeps the lock of its session", "brief-sessions", async (queue, { broker, client }) => {
  await broker.freeze();
  await queue.send(message("one", { sessionId: "a" }));
  const receiver = await client.acceptSession(queue.name, "a", renewing);
  const end = receiver.sessionLockedUntilUtc;
  await broker.advance("PT4S");
  await eventually(() => receiver.sessionLockedUntilUtc > end, "the renewal");
  await broker.advance("PT4S");
  await receiver.completeMessage(await receiveOne(receiver));
  await receiver.setSessionState("still mine");
});

testWithBroker("a lock that a handler loses is told and the message comes again", "brief", async (queue, { broker }) => {
  await broker.freeze();
  await queue.send(message());
  const [started, released] = [signal(), signal()];
  const failed = signal();
  const counts = [];
  const subscription = queue.receiver().subscribe({
    processMessage: async (one) => {
      counts.push(one.deliveryCount);
      started.fulfil();
      await released.promise;
    },
    processError: async ({ error, errorSource }) => failed.fulfil([errorSource, error.code]),
  });
  await started.promise;
  await broker.advance("PT5S");
  released.fulfil();
  assert.deepEqual(await failed.promise, ["complete", "MessageLockLost"]);
  await eventually(() => counts.length === 2, "the second delivery");
  await eventually(() => queue.isEmpty(), "the removal of the message");
  await subscription.close();
  assert.deepEqual(counts, [0, 1]);
});
