// rhea: events of a container, as its users write programs for any AMQP 1.0 broker.
"use strict";

const assert = require("node:assert/strict");
const { once } = require("node:events");
const rhea = require("rhea");
const { address, closeConnection, counts, eventually, test } = require("./support.js");

/** A connection for the time of `body`. */
async function connected(body, options = {}) {
  const connection = rhea.create_container().connect({ ...address, ...options });
  await once(connection, "connection_open");
  try {
    await body(connection);
  } finally {
    connection.close();
    await once(connection, "connection_close");
  }
}

/** Sends `messages` and waits until each is accepted. */
async function send(connection, target, ...messages) {
  const sender = connection.open_sender(target);
  await once(sender, "sendable");
  for (const message of messages) {
    sender.send(message);
    await once(sender, "accepted");
  }
  sender.close();
}

/** A receiver that settles nothing by itself, with room for `credit` messages. */
function receiver(connection, source, credit = 10) {
  const link = connection.open_receiver({ source, credit_window: 0, autoaccept: false });
  link.add_credit(credit);
  return link;
}

async function next(link) {
  const [context] = await once(link, "message");
  return context;
}

test("rhea: a message goes through a queue with its properties", async (entities) => {
  const queue = await entities.queue();
  await connected(async (connection) => {
    const sent = {
      message_id: "one",
      subject: "greeting",
      content_type: "text/plain",
      application_properties: { colour: "red", number: 7 },
      body: "hello",
    };
    await send(connection, queue, sent);
    const { message, delivery } = await next(receiver(connection, queue));
    for (const name of ["message_id", "subject", "content_type", "body"]) assert.equal(message[name], sent[name]);
    assert.deepEqual({ ...message.application_properties }, sent.application_properties);
    delivery.accept();
    await eventually(async () => (await counts(queue)).active === 0, "completion");
  });
});

test("rhea: a message that is released comes again at once", async (entities) => {
  const queue = await entities.queue();
  await connected(async (connection) => {
    await send(connection, queue, { body: "again" });
    const link = receiver(connection, queue);
    (await next(link)).delivery.release();
    const { message, delivery } = await next(link);
    assert.equal(message.body, "again");
    delivery.accept();
    await eventually(async () => (await counts(queue)).active === 0, "completion");
  });
});

test("rhea: a message that is rejected is dead-lettered", async (entities) => {
  const queue = await entities.queue();
  await connected(async (connection) => {
    await send(connection, queue, { body: "bad" });
    const { delivery } = await next(receiver(connection, queue));
    delivery.reject({ condition: "example:bad", description: "cannot be read" });
    await eventually(async () => (await counts(queue)).dead === 1, "a dead letter");
    const { message, delivery: dead } = await next(receiver(connection, `${queue}/$DeadLetterQueue`));
    assert.equal(message.body, "bad");
    dead.accept();
    await eventually(async () => (await counts(queue)).dead === 0, "completion");
  });
});

test("rhea: a message whose delivery fails comes until its deliveries are used up", async (entities) => {
  const queue = await entities.queue({ maxDeliveryCount: 2 });
  await connected(async (connection) => {
    await send(connection, queue, { body: "poison" });
    const link = receiver(connection, queue);
    for (const delivered of [0, 1]) {
      const { message, delivery } = await next(link);
      assert.equal(message.delivery_count ?? 0, delivered);
      delivery.modified({ delivery_failed: true });
    }
    await eventually(async () => (await counts(queue)).dead === 1, "a dead letter");
  });
});

test("rhea: a subscription gets what its topic is sent", async (entities) => {
  const topic = await entities.topic();
  await connected(async (connection) => {
    await send(connection, topic, { body: "event" });
    const { message, delivery } = await next(receiver(connection, `${topic}/Subscriptions/all`));
    assert.equal(message.body, "event");
    delivery.accept();
  });
});

test("rhea: a session is asked for by a filter", async (entities) => {
  const queue = await entities.queue({ requiresSession: true });
  await connected(async (connection) => {
    await send(connection, queue, { body: "a", group_id: "red" }, { body: "b", group_id: "blue" });
    const filter = rhea.types.wrap_described("blue", "com.microsoft:session-filter");
    const link = receiver(connection, { address: queue, filter: { "com.microsoft:session-filter": filter } });
    const { message, delivery } = await next(link);
    assert.deepEqual([message.body, message.group_id], ["b", "blue"]);
    delivery.accept();
  });
});

test("rhea: a queue that is missing is not found", async () => {
  await connected(async (connection) => {
    const link = connection.open_sender("no-such-queue");
    const [{ sender }] = await once(link, "sender_error");
    assert.equal(sender.error.condition, "amqp:not-found");
  });
});

test("rhea: a wrong key is refused", async () => {
  const connection = rhea.create_container().connect({ ...address, password: "WRONG_KEY_VALUE" });
  const [{ error }] = await once(connection, "connection_error");
  assert.equal(error.condition, "amqp:unauthorized-access");
});

test("rhea: a reply comes to the dynamic node of the requester's receiver", async (entities) => {
  const queue = await entities.queue();
  await connected(async (client) => {
    const replies = client.open_receiver({ source: { dynamic: true } });
    await once(replies, "receiver_open");
    const address = replies.source.address;
    assert.match(address, /^railbus\.temporary\.[0-9a-f]{32}$/);
    await send(client, queue, { message_id: "one", reply_to: address, body: "question" });
    const answer = next(replies);
    await connected(async (service) => {
      const { message, delivery } = await next(receiver(service, queue));
      delivery.accept();
      const reply = { correlation_id: message.message_id, body: "answer" };
      await send(service, message.reply_to, reply);
    });
    const { message } = await answer;
    assert.equal(message.correlation_id, "one");
    assert.equal(message.body, "answer");
  });
});

test("rhea: a receiver goes on after the broker closed its connection", async (entities) => {
  const queue = await entities.queue();
  const options = { container_id: `again-${queue}`, reconnect: true };
  await connected(async (connection) => {
    const link = receiver(connection, queue);
    await once(link, "receiver_open");
    const again = once(link, "receiver_open");
    await closeConnection(options.container_id);
    await again;
    link.add_credit(1);
    const arrival = next(link);
    await send(connection, queue, { body: "later" });
    const { message, delivery } = await arrival;
    assert.equal(message.body, "later");
    delivery.accept();
    await eventually(async () => (await counts(queue)).active === 0, "completion");
  }, options);
});
