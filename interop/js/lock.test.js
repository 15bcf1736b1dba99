// Locks: what the SDK says when one has run out, and how renewal keeps one.
"use strict";

const assert = require("node:assert/strict");
const { message, receiveOne, test, waitUntilPassed } = require("./support.js");

const LOCK_LOST = { code: "MessageLockLost" };
// The SDK renews locks by itself; a program that means to lose one says so.
const unrenewed = { maxAutoLockRenewalDurationInMs: 0 };

test("settling after the lock ran out is lock lost", "shortlock", async (queue) => {
  const sent = message();
  await queue.send(sent);
  const late = queue.receiver(unrenewed);
  const received = await receiveOne(late);
  await waitUntilPassed(received.lockedUntilUtc);
  await assert.rejects(late.completeMessage(received), LOCK_LOST);
  const nextOne = queue.receiver();
  const again = await receiveOne(nextOne);
  assert.equal(again.messageId, sent.messageId);
  assert.equal(again.deliveryCount, 1);
  await nextOne.completeMessage(again);
  assert.ok(await queue.isEmpty());
});

test("a late settlement does not touch the next holder", "shortlock", async (queue) => {
  await queue.send(message());
  const late = queue.receiver(unrenewed);
  const received = await receiveOne(late);
  const nextOne = queue.receiver();
  const again = await receiveOne(nextOne);
  await assert.rejects(late.abandonMessage(received), LOCK_LOST);
  assert.equal((await queue.peek()).length, 1);
  await nextOne.completeMessage(again);
  assert.ok(await queue.isEmpty());
});

test("a renewed lock outlives the first one", "shortlock", async (queue) => {
  await queue.send(message());
  const holder = queue.receiver();
  const received = await receiveOne(holder);
  const first = received.lockedUntilUtc;
  const other = queue.receiver();
  while (received.lockedUntilUtc.getTime() < first.getTime() + 2000) {
    assert.deepEqual(await other.receiveMessages(1, { maxWaitTimeInMs: 500 }), []);
    const renewed = await holder.renewMessageLock(received);
    assert.equal(renewed.getTime(), received.lockedUntilUtc.getTime());
  }
  await waitUntilPassed(first);
  assert.deepEqual(await other.receiveMessages(1, { maxWaitTimeInMs: 500 }), []);
  await holder.completeMessage(received);
  assert.ok(await queue.isEmpty());
});

test("renewing a lock that ran out is lock lost", "shortlock", async (queue) => {
  await queue.send(message());
  const receiver = queue.receiver(unrenewed);
  const received = await receiveOne(receiver);
  await waitUntilPassed(received.lockedUntilUtc);
  await assert.rejects(receiver.renewMessageLock(received), LOCK_LOST);
});
