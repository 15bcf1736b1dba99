// Refusals: a wrong key and a queue that does not exist, each with the error the wire contract names.
"use strict";

const assert = require("node:assert/strict");
const { testWithBroker } = require("./own-broker.js");
const { PREFIX, Queue, connect, connectionString, message, test } = require("./support.js");

const operations = {
  send: (queue) => queue.send(message()),
  receive: (queue) => queue.receiver().receiveMessages(1, { maxWaitTimeInMs: 500 }),
  peek: (queue) => queue.peek(),
};

function wrongKey() {
  const bad = connectionString.replace("SharedAccessKey=", "SharedAccessKey=wrong");
  assert.notEqual(bad, connectionString);
  return bad;
}

for (const [name, operation] of Object.entries(operations)) {
  test(`${name} with a wrong key is unauthorized`, "plain", async (queue) => {
    const client = connect({ retryOptions: { maxRetries: 0 } }, wrongKey());
    await assert.rejects(operation(new Queue(client, queue.name)), { code: "UnauthorizedAccess" });
    await client.close();
    await queue.send(message("others are still served"));
    assert.equal((await queue.take()).length, 1);
  });

  test(`${name} on a missing queue is entity not found`, "plain", async () => {
    const client = connect({ retryOptions: { maxRetries: 0 } });
    await assert.rejects(operation(new Queue(client, `${PREFIX}-missing`)), { code: "MessagingEntityNotFound" });
    await client.close();
  });
}

testWithBroker("a disabled queue refuses with the error for that", "closed", async (queue) => {
  await assert.rejects(queue.send(message()), { code: "MessagingEntityDisabled" });
  await assert.rejects(queue.receiver().receiveMessages(1), { code: "MessagingEntityDisabled" });
});
