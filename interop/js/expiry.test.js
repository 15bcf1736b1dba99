// Time to live: expired messages go to the dead-letter queue or are dropped, with nobody receiving; the others
// show exactly the time that they were given.
"use strict";

const assert = require("node:assert/strict");
const { testWithBroker } = require("./own-broker.js");
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

/** The time to live as the SDK tells it, from the message's creation and from its arrival. */
function lives({ timeToLive, enqueuedTimeUtc, expiresAtUtc, _rawAmqpMessage: { properties } }) {
  return [timeToLive, properties.absoluteExpiryTime - properties.creationTime, expiresAtUtc - enqueuedTimeUtc];
}

test("the time to live is what was sent, or the queue's own", "plain", async (queue) => {
  // The queue's own time to live of one hour is default and ceiling.
  for (const [sent, expected] of [[12_345, 12_345], [300_000, 300_000], [undefined, 3_600_000], [7_200_000, 3_600_000]]) {
    await queue.send(message("body", { timeToLive: sent }));
    const [received] = await queue.take();
    assert.deepEqual(lives(received), [expected, expected, expected]);
  }
});

test("the creation time is the enqueued time unless the sender gave one", "plain", async (queue) => {
  await queue.send(message());
  const creationTime = Date.parse("2024-02-29T12:30:15.250Z");
  await queue.send({ body: "body", bodyType: "data", properties: { creationTime } });
  const [without, given] = await queue.take(2);
  assert.equal(without._rawAmqpMessage.properties.creationTime, without.enqueuedTimeUtc.getTime());
  assert.equal(given._rawAmqpMessage.properties.creationTime, creationTime);
  assert.equal(given.timeToLive, 3_600_000);
});

for (const [whose, timeToLive, expected] of [["its own", 300_000, 300_000], ["its queue's", undefined, 86_400_000]]) {
  testWithBroker(`a message that is sent again keeps ${whose} time to live`, "orders", async (queue, { broker }) => {
    await queue.send(message("body", { timeToLive }));
    for (let round = 0; round < 3; round += 1) {
      await broker.advance("PT1M");
      const [received] = await queue.take();
      assert.equal(received.timeToLive, expected);
      await queue.send(received);
    }
  });
}
