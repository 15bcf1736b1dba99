// Message ids: a message that is sent without one gets one from the broker, which stays the same.
// This SDK keeps its lock renewals by message id, so without one it cannot settle what it receives.
"use strict";

const assert = require("node:assert/strict");
const { execFile } = require("node:child_process");
const { promisify } = require("node:util");
const Long = require("long");
const { testWithBroker } = require("./own-broker.js");
const { Queue, eventually, idsOf, receive, receiveOne } = require("./support.js");

const ASSIGNED = /^[0-9a-f]{32}$/i;

function assertAssigned(ids) {
  for (const id of ids) assert.match(id, ASSIGNED);
  assert.equal(new Set(ids).size, ids.length);
}

const sends = {
  alone: async (sender, messages) => {
    for (const one of messages) await sender.sendMessages(one);
  },
  "in an array": (sender, messages) => sender.sendMessages(messages),
  "in a batch": async (sender, messages) => {
    const batch = await sender.createMessageBatch();
    for (const one of messages) assert.ok(batch.tryAddMessage(one));
    await sender.sendMessages(batch);
  },
  // What the SDK knows to be scheduled it gives an id of its own.
  "with a time": (sender, messages) => sender.sendMessages(messages.map(scheduled)),
};

function scheduled({ body }) {
  const time = new Date(Date.now() + 3_600_000);
  return { body, bodyType: "data", messageAnnotations: { "x-opt-scheduled-enqueue-time": time } };
}

for (const [how, send] of Object.entries(sends)) {
  testWithBroker(`messages sent without ids ${how} get ids that stay`, "orders", async (queue, { broker, client }) => {
    await send(client.createSender(queue.name), [{ body: 1 }, { body: 2 }, { body: 3 }]);
    const ids = idsOf(await queue.peek());
    assert.equal(ids.length, 3);
    assertAssigned(ids);
    await broker.advance("PT61M");
    const receiver = queue.receiver();
    const first = await receive(receiver, 3);
    assert.deepEqual(idsOf(first), ids);
    for (const one of first) await receiver.abandonMessage(one);
    const second = await receive(receiver, 3);
    assert.deepEqual(idsOf(second), ids);
    for (const one of second) await receiver.deferMessage(one);
    const third = await receiver.receiveDeferredMessages(second.map((one) => one.sequenceNumber));
    assert.deepEqual(idsOf(third), ids);
    for (const one of third) await receiver.deadLetterMessage(one);
    assert.deepEqual(idsOf(await queue.peekDead()), ids);
  });
}

testWithBroker("an id that the sender gave is kept", "orders", async (queue) => {
  await queue.send({ body: 1, messageId: "given" }, { body: 2, messageId: "" });
  assert.deepEqual(idsOf(await queue.take(2)), ["given", ""]);
});

testWithBroker("messages without ids are no duplicates", "once", async (queue, { client }) => {
  await queue.send({ body: "same" }, { body: "same" });
  await client.createSender(queue.name).sendMessages([{ body: "same" }, { body: "same" }]);
  assertAssigned(idsOf(await queue.take(4)));
});

testWithBroker("a forwarded message and a forwarded dead letter keep their ids", "target", async (target, { client }) => {
  await client.createSender("forward").sendMessages({ body: "forwarded" });
  const [forwarded] = await target.take();
  assertAssigned(idsOf([forwarded]));
  const mortal = new Queue(client, "mortal");
  await mortal.send({ body: "doomed" });
  const receiver = mortal.receiver();
  const doomed = await receiveOne(receiver);
  assertAssigned(idsOf([doomed, forwarded]));
  await receiver.deadLetterMessage(doomed);
  assert.deepEqual(idsOf(await target.take()), idsOf([doomed]));
});

const copyFrom = async (client, subscription) => {
  const options = { receiveMode: "receiveAndDelete" };
  return receiveOne(client.createReceiver("events", subscription, options));
};

testWithBroker(
  "copies of a message have its id, forwarded ones too",
  "archive",
  async (archive, { client }) => {
    await client.createSender("events").sendMessages({ body: "kept", subject: "archived" });
    const copies = [await copyFrom(client, "all"), ...(await archive.take())];
    assertAssigned(idsOf(copies.slice(1)));
    assert.deepEqual(idsOf(copies), [copies[1].messageId, copies[1].messageId]);
  },
  "topics.json",
);

// The programs of users: they send bodies and nothing else, and leave the renewal of locks on.

const takes = {
  "a call": async (receiver, count) => {
    for (const one of await receive(receiver, count)) await receiver.completeMessage(one);
  },
  "an iterator": async (receiver, count) => {
    for await (const one of receiver.getMessageIterator()) {
      await receiver.completeMessage(one);
      count -= 1;
      if (count === 0) break;
    }
  },
  "a handler, and completed by the SDK": (receiver, count) => handle(receiver, count, async () => {}),
  "a handler that completes them": (receiver, count) =>
    handle(receiver, count, (one) => receiver.completeMessage(one), { autoCompleteMessages: false }),
};

async function handle(receiver, count, processMessage, options) {
  const errors = [];
  let processed = 0;
  const subscription = receiver.subscribe(
    {
      processMessage: async (one) => {
        await processMessage(one);
        processed += 1;
      },
      processError: async ({ error }) => errors.push(error),
    },
    options,
  );
  await eventually(() => processed === count || errors.length > 0, "the handling of all messages");
  await eventually(async () => (await peek(receiver)).length === 0 || errors.length > 0, "their removal");
  await subscription.close();
  assert.deepEqual(errors, []);
}

const peek = (receiver) => receiver.peekMessages(10, { fromSequenceNumber: Long.ONE });

const places = {
  "a queue": { name: "orders", open: (client) => client.createReceiver("orders") },
  "a session": { name: "sessions", fields: { sessionId: "a" }, open: (client) => client.acceptSession("sessions", "a") },
  "the next session": { name: "sessions", fields: { sessionId: "a" }, open: (client) => client.acceptNextSession("sessions") },
};

for (const [where, { name, fields, open }] of Object.entries(places)) {
  for (const [how, take] of Object.entries(takes)) {
    testWithBroker(`messages of ${where} without ids are taken by ${how}`, name, async (queue, { client }) => {
      for (let body = 0; body < 3; body += 1) await queue.send({ body, ...fields });
      const receiver = await open(client);
      await take(receiver, 3);
      assert.deepEqual(await peek(receiver), []);
      await receiver.close();
    });
  }
}

testWithBroker("a renewed lock of a message without an id is kept", "brief", async (queue, { broker, client }) => {
  await broker.freeze();
  await queue.send({ body: "slow" });
  const receiver = client.createReceiver(queue.name);
  const held = await receiveOne(receiver);
  const end = held.lockedUntilUtc;
  await broker.advance("PT4S");
  await eventually(() => held.lockedUntilUtc > end, "the renewal");
  await broker.advance("PT4S");
  await receiver.completeMessage(held);
  assert.ok(await queue.isEmpty());
});

/** A program whose client is closed while each way of receiving holds a message without an id. */
const PROGRAM = `
  const { ServiceBusClient } = require("@azure/service-bus");
  (async () => {
    const client = new ServiceBusClient(process.argv[1]);
    const sender = client.createSender("orders");
    await sender.sendMessages([{ body: 1 }, { body: 2 }, { body: 3 }]);
    await client.createSender("sessions").sendMessages({ body: 4, sessionId: "a" });
    const held = [];
    held.push(...(await client.createReceiver("orders").receiveMessages(1)));
    for await (const one of client.createReceiver("orders").getMessageIterator()) {
      held.push(one);
      break;
    }
    await new Promise((resolve, reject) => {
      client.createReceiver("orders").subscribe({
        processMessage: async (one) => {
          held.push(one);
          resolve();
          await new Promise((wait) => setTimeout(wait, 100));
        },
        processError: async ({ error }) => reject(error),
      });
    });
    held.push(...(await (await client.acceptNextSession("sessions")).receiveMessages(1)));
    await client.close();
    console.log(held.map((one) => one.body).join());
  })();`;

testWithBroker("a client that holds messages without ids is closed and its program ends", "orders", async (_, { broker }) => {
  const execute = promisify(execFile);
  const { stdout, stderr } = await execute(process.execPath, ["-e", PROGRAM, broker.connectionString]);
  assert.deepEqual([stdout, stderr], ["1,2,3,4\n", ""]);
});
