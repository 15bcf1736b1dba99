// Duplicate detection: a second message with an id is accepted and dropped.
"use strict";

const assert = require("node:assert/strict");
const { idsOf, message, test } = require("./support.js");

test("a second message with an id is accepted and dropped", "once", async (queue) => {
  const first = message("first");
  const other = message("other");
  await queue.send(first);
  await queue.send(message("again", { messageId: first.messageId }));
  await queue.send(other);
  const received = await queue.take(2);
  assert.deepEqual(idsOf(received), idsOf([first, other]));
  assert.deepEqual(received.map((one) => one.body), ["first", "other"]);
  await queue.send(message("once more", { messageId: first.messageId }));
  assert.ok(await queue.isEmpty());
});

test("a batch is checked message by message", "once", async (queue, client) => {
  const first = message("first");
  const second = message("second");
  await queue.send(first);
  const again = message("again", { messageId: first.messageId });
  await client.createSender(queue.name).sendMessages([again, second, second]);
  assert.deepEqual(idsOf(await queue.take(2)), idsOf([first, second]));
  assert.ok(await queue.isEmpty());
});
