// Sending: one, a batch, many at once, large; and what the broker stamps on a message.
"use strict";

const assert = require("node:assert/strict");
const { randomBytes } = require("node:crypto");
const { idsOf, message, receiveOne, test } = require("./support.js");

const KIB = 1024;

test("a sent message arrives with its body", "plain", async (queue) => {
  const sent = message({ hello: "world", list: [1, 2.5, null] });
  await queue.send(sent);
  const [received] = await queue.take();
  assert.equal(received.messageId, sent.messageId);
  assert.deepEqual(received.body, sent.body);
});

test("a batch arrives whole and in order", "plain", async (queue, client) => {
  const sent = Array.from({ length: 10 }, (_, number) => message(`part ${number}`));
  const sender = client.createSender(queue.name);
  const batch = await sender.createMessageBatch();
  for (const one of sent) assert.ok(batch.tryAddMessage(one));
  await sender.sendMessages(batch);
  const received = await queue.take(10);
  assert.deepEqual(idsOf(received), idsOf(sent));
  assert.deepEqual(received.map((one) => one.body), sent.map((one) => one.body));
  const first = received[0].sequenceNumber;
  received.forEach((one, place) => assert.ok(one.sequenceNumber.equals(first.add(place))));
});

test("an array of messages arrives whole", "plain", async (queue, client) => {
  const sent = Array.from({ length: 5 }, () => message());
  await client.createSender(queue.name).sendMessages(sent);
  assert.deepEqual(idsOf(await queue.take(5)), idsOf(sent));
});

test("two hundred concurrent sends all arrive once", "plain", async (queue, client) => {
  const sent = Array.from({ length: 200 }, (_, number) => message(`number ${number}`));
  const sender = client.createSender(queue.name);
  await Promise.all(sent.map((one) => sender.sendMessages(one)));
  const received = await queue.take(200);
  assert.deepEqual(idsOf(received).sort(), idsOf(sent).sort());
  assert.ok(await queue.isEmpty());
});

for (const size of [200 * KIB, 900 * KIB]) {
  test(`a message of ${size / KIB} KiB arrives byte for byte`, "large", async (queue) => {
    const body = randomBytes(size);
    await queue.send(message(body));
    const receiver = queue.receiver({ skipParsingBodyAsJson: true });
    const received = await receiveOne(receiver);
    assert.ok(body.equals(received.body));
    await receiver.completeMessage(received);
    assert.ok(await queue.isEmpty());
  });
}

/** What this SDK writes before the body of a message that has nothing else. */
const OVERHEAD = 28;

test("a message at the limit of its link arrives and a larger one is refused", "large", async (queue, client) => {
  const sender = client.createSender(queue.name);
  const { maxSizeInBytes } = await sender.createMessageBatch();
  assert.equal(maxSizeInBytes, 1024 * KIB);
  const body = randomBytes(maxSizeInBytes - OVERHEAD);
  const tooLarge = { body: Buffer.concat([body, Buffer.alloc(1)]) };
  // The SDK leaves it to the broker to refuse it, and the link stays.
  for (let round = 0; round < 3; round += 1) {
    await assert.rejects(sender.sendMessages(tooLarge), { code: "MessageSizeExceeded" });
  }
  await sender.sendMessages({ body });
  const receiver = queue.receiver({ skipParsingBodyAsJson: true });
  const received = await receiveOne(receiver);
  assert.ok(body.equals(received.body));
  await receiver.deferMessage(received);
  const [deferred] = await receiver.receiveDeferredMessages(received.sequenceNumber);
  assert.ok(body.equals(deferred.body));
  await receiver.completeMessage(deferred);
  assert.ok(await queue.isEmpty());
});

test("sequence numbers rise and enqueued times are now", "plain", async (queue) => {
  const before = Date.now() - 5000;
  await queue.send(...Array.from({ length: 5 }, () => message()));
  const received = await queue.take(5);
  const times = received.map((one) => one.enqueuedTimeUtc.getTime());
  assert.ok(received[0].sequenceNumber.greaterThan(0));
  received.slice(1).forEach((one, place) => {
    assert.ok(one.sequenceNumber.greaterThan(received[place].sequenceNumber));
    assert.ok(times[place + 1] >= times[place]);
  });
  assert.ok(before <= times[0] && times[4] <= Date.now() + 5000);
});
