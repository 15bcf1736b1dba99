// The status of a queue, each way, and one that vanishes when nobody uses it.
"use strict";

const assert = require("node:assert/strict");
const { testWithBroker } = require("./own-broker.js");
const { message, receiveOne } = require("./support.js");

const disabled = { code: "MessagingEntityDisabled" };

for (const name of ["closed", "no-entry"]) {
  testWithBroker(`a queue that refuses senders says that it is disabled: ${name}`, name, async (queue) => {
    await assert.rejects(queue.send(message()), disabled);
  });
}

for (const name of ["closed", "no-exit"]) {
  testWithBroker(`a queue that refuses receivers says that it is disabled: ${name}`, name, async (queue) => {
    await assert.rejects(queue.receiver().receiveMessages(1), disabled);
  });
}

testWithBroker("a subscribed handler hears that its queue is disabled", "no-exit", async (queue) => {
  const refused = await new Promise((resolve, reject) => {
    queue.receiver().subscribe({
      processMessage: async () => reject(new Error("a message came")),
      processError: async ({ error }) => resolve(error),
    });
  });
  assert.equal(refused.code, disabled.code);
});

testWithBroker("a queue that refuses only receivers takes messages", "no-exit", async (queue) => {
  await queue.send(message());
});

testWithBroker("a queue that refuses only senders is received from", "no-entry", async (queue) => {
  assert.deepEqual(await queue.receiver().receiveMessages(1, { maxWaitTimeInMs: 500 }), []);
});

testWithBroker(
  "a queue vanishes when nobody has used it for its five minutes",
  "fleeting",
  async (queue, { broker }) => {
    const sent = message();
    await queue.send(sent);
    const receiver = queue.receiver();
    await broker.advance("PT4M");
    const received = await receiveOne(receiver);
    assert.equal(received.messageId, sent.messageId);
    await broker.advance("PT4M");
    await receiver.completeMessage(received);
    await queue.send(message());
    await receiver.close();
    await broker.advance("PT5M");
    await assert.rejects(queue.send(message()), { code: "MessagingEntityNotFound" });
  },
);
