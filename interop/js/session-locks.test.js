// Locks of sessions: the session has a deadline and its messages have none.
"use strict";

const assert = require("node:assert/strict");
const { eventually, message, receiveOne } = require("./support.js");
const { signal, testWithBroker } = require("./own-broker.js");

const NEVER = new Date("9999-12-31T23:59:59.999Z");
const quiet = { maxAutoLockRenewalDurationInMs: 0 };

/** Sends messages of the session `a` and accepts it. */
async function holdOf(queue, client, bodies, options = quiet) {
  for (const body of bodies) await queue.send(message(body, { sessionId: "a" }));
  return client.acceptSession(queue.name, "a", options);
}

async function deferAndReceive(holder) {
  const received = await receiveOne(holder);
  await holder.deferMessage(received);
  const [deferred] = await holder.receiveDeferredMessages(received.sequenceNumber);
  return deferred;
}

testWithBroker("a message of a session is locked without an end", "sessions", async (queue, { client }) => {
  const holder = await holdOf(queue, client, ["one", "two"]);
  const received = await receiveOne(holder);
  const deferred = await deferAndReceive(holder);
  const peeked = await holder.peekMessages(2);
  for (const one of [received, deferred, ...peeked]) assert.deepEqual(one.lockedUntilUtc, NEVER);
  assert.ok(holder.sessionLockedUntilUtc < new Date(Date.now() + 3_600_000));
  await assert.rejects(holder.renewMessageLock(received), /invalid operation when working with sessions/);
  await holder.completeMessage(received);
  await holder.completeMessage(deferred);
});

testWithBroker("a holder has no messages of another session of its connection", "sessions", async (queue, { client }) => {
  const holder = await holdOf(queue, client, ["one"]);
  const received = await receiveOne(holder);
  await holder.deferMessage(received);
  const { sequenceNumber } = received;
  await queue.send(message("two", { sessionId: "b" }));
  const other = await client.acceptSession(queue.name, "b", quiet);
  await assert.rejects(other.receiveDeferredMessages(sequenceNumber), { code: "MessageNotFound" });
  const [deferred] = await holder.receiveDeferredMessages(sequenceNumber);
  await holder.completeMessage(deferred);
  await other.completeMessage(await receiveOne(other));
});

testWithBroker("a handler of a session keeps its lock", "brief-sessions", async (queue, { broker, client }) => {
  await broker.freeze();
  // The SDK's own default: it renews the lock of a session for five minutes.
  const holder = await holdOf(queue, client, ["one"], {});
  const end = holder.sessionLockedUntilUtc;
  const [started, released] = [signal(), signal()];
  const errors = [];
  const subscription = holder.subscribe({
    processMessage: async () => {
      started.fulfil();
      await released.promise;
    },
    processError: async ({ error }) => errors.push(error),
  });
  await started.promise;
  await broker.advance("PT4S");
  await eventually(() => holder.sessionLockedUntilUtc > end, "the renewal");
  await broker.advance("PT4S");
  released.fulfil();
  await eventually(async () => (await holder.peekMessages(1)).length === 0, "the removal of the message");
  await subscription.close();
  assert.deepEqual(errors, []);
});

testWithBroker("a deferred message is settled after the first deadline of a renewed session", "sessions", async (queue, { broker, client }) => {
  const holder = await holdOf(queue, client, ["one"]);
  const deferred = await deferAndReceive(holder);
  await broker.advance("PT4M");
  await holder.renewSessionLock();
  await broker.advance("PT4M");
  await holder.completeMessage(deferred);
  assert.deepEqual(await holder.peekMessages(1), []);
});

// What came over the link this SDK judges by itself; it asks the broker about deferred messages.
for (const settle of ["completeMessage", "abandonMessage", "deferMessage", "deadLetterMessage"]) {
  testWithBroker(`a second settlement is a lost lock and the session goes on: ${settle}`, "sessions", async (queue, { client }) => {
    const holder = await holdOf(queue, client, ["one", "two"]);
    const first = await deferAndReceive(holder);
    await holder.completeMessage(first);
    await assert.rejects(holder[settle](first), { code: "MessageLockLost" });
    const second = await receiveOne(holder);
    assert.equal(second.body, "two");
    await holder.completeMessage(second);
    await holder.setSessionState("still mine");
  });
}

testWithBroker("an idle receiver of a session ends half a second after its lock", "brief-sessions", async (queue, { broker, client }) => {
  await broker.freeze();
  const first = await holdOf(queue, client, []);
  await broker.advance("PT5S");
  await assert.rejects(first.renewSessionLock(), { code: "SessionLockLost" });
  await broker.advance("PT0.4S");
  await assert.rejects(client.acceptSession(queue.name, "a", quiet), { code: "SessionCannotBeLocked" });
  assert.equal(first.isClosed, false);
  await broker.advance("PT0.1S");
  await eventually(() => first.isClosed, "the end of the first receiver");
  const second = await client.acceptSession(queue.name, "a", quiet);
  assert.equal(second.sessionId, "a");
});

testWithBroker("a receiver of a session that holds a message ends with its lock", "brief-sessions", async (queue, { broker, client }) => {
  await broker.freeze();
  const first = await holdOf(queue, client, ["one"]);
  await receiveOne(first);
  await broker.advance("PT5S");
  await eventually(() => first.isClosed, "the end of the first receiver");
  const second = await client.acceptSession(queue.name, "a", quiet);
  assert.equal((await receiveOne(second)).deliveryCount, 1);
});
