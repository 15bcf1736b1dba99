// rhea-promise: the same protocol with promises, as the SDK itself uses it.
"use strict";

const assert = require("node:assert/strict");
const { Connection, ReceiverEvents, types } = require("rhea-promise");
const { address, counts, eventually, test } = require("./support.js");

async function connected(body) {
  const connection = new Connection(address);
  await connection.open();
  try {
    await body(connection);
  } finally {
    await connection.close();
  }
}

/** A receiver with room for one message at a time, which `next` asks for. */
async function receiver(connection, source) {
  return connection.createReceiver({ source, credit_window: 0, autoaccept: false });
}

async function next(link) {
  const message = new Promise((resolve) => link.once(ReceiverEvents.message, resolve));
  link.addCredit(1);
  return message;
}

test("rhea-promise: a send is awaited and a message is accepted", async (entities) => {
  const queue = await entities.queue();
  await connected(async (connection) => {
    const sender = await connection.createAwaitableSender({ target: queue });
    const delivery = await sender.send({ body: { order: 1 }, application_properties: { colour: "red" } });
    assert.ok(delivery.settled);
    await sender.close();
    const link = await receiver(connection, queue);
    const { message, delivery: received } = await next(link);
    assert.deepEqual(message.body, { order: 1 });
    assert.equal(message.application_properties.colour, "red");
    received.accept();
    await eventually(async () => (await counts(queue)).active === 0, "completion");
    await link.close();
  });
});

test("rhea-promise: a message comes again after its delivery failed", async (entities) => {
  const queue = await entities.queue();
  await connected(async (connection) => {
    const sender = await connection.createAwaitableSender({ target: queue });
    await sender.send({ body: "again" });
    const link = await receiver(connection, queue);
    (await next(link)).delivery.modified({ delivery_failed: true, undeliverable_here: false });
    const { message, delivery } = await next(link);
    assert.deepEqual([message.body, message.delivery_count], ["again", 1]);
    delivery.accept();
    await eventually(async () => (await counts(queue)).active === 0, "completion");
  });
});

test("rhea-promise: a subscription gets what its topic is sent", async (entities) => {
  const topic = await entities.topic();
  await connected(async (connection) => {
    const sender = await connection.createAwaitableSender({ target: topic });
    await sender.send({ body: "event" });
    const { message, delivery } = await next(await receiver(connection, `${topic}/Subscriptions/all`));
    assert.equal(message.body, "event");
    delivery.accept();
  });
});

test("rhea-promise: a session is asked for by a filter", async (entities) => {
  const queue = await entities.queue({ requiresSession: true });
  await connected(async (connection) => {
    const sender = await connection.createAwaitableSender({ target: queue });
    await sender.send({ body: "a", group_id: "red" });
    await sender.send({ body: "b", group_id: "blue" });
    const name = "com.microsoft:session-filter";
    const source = { address: queue, filter: { [name]: types.wrap_described("blue", name) } };
    const link = await receiver(connection, source);
    const { message, delivery } = await next(link);
    assert.deepEqual([message.body, message.group_id], ["b", "blue"]);
    delivery.accept();
    await eventually(async () => (await counts(queue)).active === 1, "completion");
  });
});

test("rhea-promise: a queue that is missing rejects the promise", async () => {
  await connected(async (connection) => {
    await assert.rejects(connection.createAwaitableSender({ target: "no-such-queue" }), { condition: "amqp:not-found" });
  });
});
