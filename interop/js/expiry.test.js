// Time to live: to the dead-letter queue with a reason, or dropped, with nobody receiving.
"use strict";

const assert = require("node:assert/strict");
const { eventually, message, test } = require("./support.js");

test("an expired message goes to the dead-letter queue", "ttl", async (queue) => {
  const sent = message("too late", { timeToLive: 1000 });
  await queue.send(sent);
  const [dead] = await eventually(async () => {
    const peeked = await queue.peekDead();
    return peeked.length > 0 && peeked;
  }, "the expiry");
  assert.equal(dead.messageId, sent.messageId);
  assert.equal(dead.deadLetterReason, "TTLExpiredException");
  assert.equal(dead.deadLetterErrorDescription, "The message expired and was dead lettered.");
  assert.ok(await queue.isEmpty());
});

test("the default of the queue drops an expired message", "ttl-drop", async (queue) => {
  await queue.send(message(), message("body", { timeToLive: 3_600_000 }));
  await eventually(() => queue.isEmpty(), "the expiry of both messages");
  assert.deepEqual(await queue.peekDead(), []);
});

test("an unexpired message shows when it will expire", "plain", async (queue) => {
  await queue.send(message("body", { timeToLive: 300_000 }), message());
  const received = await queue.take(2);
  // The queue's own time to live of one hour is default and ceiling.
  [300_000, 3_600_000].forEach((timeToLive, place) => {
    const expiry = received[place].enqueuedTimeUtc.getTime() + timeToLive;
    assert.equal(received[place].expiresAtUtc.getTime(), expiry);
    assert.equal(received[place]._rawAmqpMessage.properties.absoluteExpiryTime, expiry);
  });
});
