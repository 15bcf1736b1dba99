// Scheduled messages: by operation and by property, seen in a peek, cancelled, received at their time.
"use strict";

const assert = require("node:assert/strict");
const { idsOf, message, test } = require("./support.js");

const inSeconds = (seconds) => new Date(Date.now() + seconds * 1000);

test("scheduled messages come at their time and cancelled ones do not", "plain", async (queue, client) => {
  const due = inSeconds(3);
  const [kept, cancelled, alsoKept] = ["kept", "cancelled", "also kept"].map((body) => message(body));
  const sender = client.createSender(queue.name);
  const numbers = await sender.scheduleMessages([kept, cancelled, alsoKept], due);
  const peeked = await queue.peek();
  assert.deepEqual(peeked.map((one) => one.sequenceNumber.toString()), numbers.map(String));
  assert.deepEqual(peeked.map((one) => one.state), ["scheduled", "scheduled", "scheduled"]);
  await sender.cancelScheduledMessages(numbers[1]);
  for (const missing of [[numbers[0], numbers[1]], numbers[0].negate()]) {
    await assert.rejects(sender.cancelScheduledMessages(missing), { code: "MessageNotFound" });
  }
  const received = await queue.take(2);
  assert.deepEqual(idsOf(received), idsOf([kept, alsoKept]));
  for (const one of received) {
    assert.equal(one.scheduledEnqueueTimeUtc.getTime(), due.getTime());
    assert.ok(one.enqueuedTimeUtc >= due);
    assert.ok(one.sequenceNumber.greaterThan(numbers[2]));
  }
  assert.ok(await queue.isEmpty());
});

test("messages that are sent with a time come by time", "plain", async (queue) => {
  const second = message("second", { scheduledEnqueueTimeUtc: inSeconds(3) });
  const first = message("first", { scheduledEnqueueTimeUtc: inSeconds(2) });
  const past = message("past", { scheduledEnqueueTimeUtc: inSeconds(-60) });
  await queue.send(second, first, past);
  assert.deepEqual(idsOf(await queue.take(3)), idsOf([past, first, second]));
});
