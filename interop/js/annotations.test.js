// Annotations: which ones a message carries, by how it came here and how it is looked at.
"use strict";

const assert = require("node:assert/strict");
const { once } = require("node:events");
const Long = require("long");
const rhea = require("rhea");
const { testWithBroker } = require("./own-broker.js");
const { Queue, message, receive, receiveOne } = require("./support.js");

const ENQUEUED_TIME = "x-opt-enqueued-time";
const ENQUEUED_SEQUENCE_NUMBER = "x-opt-enqueue-sequence-number";
const LOCKED_UNTIL = "x-opt-locked-until";
const LOCK_TOKEN = "x-opt-lock-token";
const SCHEDULED_TIME = "x-opt-scheduled-enqueue-time";
const SEQUENCE_NUMBER = "x-opt-sequence-number";
const STATE = "x-opt-message-state";

const sorted = (annotations) => Object.keys(annotations ?? {}).sort();

function assertAnnotations(one, ...names) {
  assert.deepEqual(sorted(one._rawAmqpMessage.messageAnnotations), names.sort());
}

function assertDeliveryAnnotations(one, ...names) {
  assert.deepEqual(sorted(one._rawAmqpMessage.deliveryAnnotations), names.sort());
}

/** The lock token among the delivery annotations, which this SDK shows as an object of bytes. */
function annotatedToken(one) {
  const bytes = Object.values(one._rawAmqpMessage.deliveryAnnotations[LOCK_TOKEN]);
  return Buffer.from(bytes).toString("hex");
}

const tokenOf = (one) => one.lockToken.replaceAll("-", "");
const annotated = (fields) => ({ body: "annotated", bodyType: "data", ...fields });

async function deferOne(receiver) {
  const received = await receiveOne(receiver);
  await receiver.deferMessage(received);
  return received;
}

async function deferAndReceive(receiver) {
  const { sequenceNumber } = await deferOne(receiver);
  const [deferred] = await receiver.receiveDeferredMessages(sequenceNumber);
  return deferred;
}

testWithBroker("a plain delivery has its time, number and lock", "orders", async (queue) => {
  await queue.send(message());
  const received = await receiveOne(queue.receiver());
  assertAnnotations(received, ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL);
  assertDeliveryAnnotations(received, LOCK_TOKEN);
  assert.equal(annotatedToken(received), tokenOf(received));
  assert.equal(received.state, "active");
  assert.equal(received.enqueuedSequenceNumber, undefined);
});

testWithBroker("a delivery to delete has no lock", "orders", async (queue) => {
  await queue.send(message());
  const received = await receiveOne(queue.receiver({ receiveMode: "receiveAndDelete" }));
  assertAnnotations(received, ENQUEUED_TIME, SEQUENCE_NUMBER);
  assertDeliveryAnnotations(received);
  assert.equal(received.lockToken, undefined);
  assert.equal(received.delivery.tag.length, 0);
});

testWithBroker(
  "a copy of a subscription is a plain delivery",
  "archive",
  async (_, { client }) => {
    await client.createSender("events").sendMessages(message());
    const received = await receiveOne(client.createReceiver("events", "all"));
    assertAnnotations(received, ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL);
    assertDeliveryAnnotations(received, LOCK_TOKEN);
  },
  "topics.json",
);

testWithBroker("a deferred message has a state and a lock", "orders", async (queue) => {
  await queue.send(message());
  const deferred = await deferAndReceive(queue.receiver());
  assertAnnotations(deferred, ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL, STATE);
  assertDeliveryAnnotations(deferred, LOCK_TOKEN);
  assert.equal(deferred.state, "deferred");
});

testWithBroker("a deferred message to delete has a state and no lock", "orders", async (queue) => {
  await queue.send(message());
  const receiver = queue.receiver();
  const { sequenceNumber } = await deferOne(receiver);
  const [deferred] = await queue.receiver({ receiveMode: "receiveAndDelete" }).receiveDeferredMessages(sequenceNumber);
  assertAnnotations(deferred, ENQUEUED_TIME, SEQUENCE_NUMBER, STATE);
  assertDeliveryAnnotations(deferred);
});

testWithBroker("a peeked message has a state and a lock that is past", "orders", async (queue) => {
  await queue.send(message());
  const [peeked] = await queue.peek();
  assertAnnotations(peeked, ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL, STATE);
  assertDeliveryAnnotations(peeked);
  assert.deepEqual(peeked.lockedUntilUtc, new Date("0001-01-01T00:00:00Z"));
  assert.equal(peeked.state, "active");
});

testWithBroker("a peeked message that is locked shows its deadline", "orders", async (queue) => {
  await queue.send(message());
  const received = await receiveOne(queue.receiver());
  const [peeked] = await queue.peek();
  assertAnnotations(peeked, ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL, STATE);
  assertDeliveryAnnotations(peeked);
  // Each time that it is shown, the deadline is counted from the moment.
  assert.ok(Math.abs(peeked.lockedUntilUtc - received.lockedUntilUtc) < 1000);
});

testWithBroker("a message that was scheduled says so", "orders", async (queue, { broker, client }) => {
  const due = new Date(Date.now() + 3_600_000);
  await client.createSender(queue.name).scheduleMessages(message(), due);
  await queue.send(message("body", { scheduledEnqueueTimeUtc: due }));
  await broker.advance("PT61M");
  assert.deepEqual((await queue.peek()).map((one) => one.state), ["active", "active"]);
  for (const received of await receive(queue.receiver(), 2)) {
    assertAnnotations(received, ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL, SCHEDULED_TIME, STATE);
    assert.equal(received.state, "scheduled");
    assert.equal(received.enqueuedSequenceNumber, undefined);
  }
});

testWithBroker("a message whose time had passed was not scheduled", "orders", async (queue) => {
  await queue.send(message("body", { scheduledEnqueueTimeUtc: new Date(Date.now() - 3_600_000) }));
  const received = await receiveOne(queue.receiver());
  assertAnnotations(received, ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL, SCHEDULED_TIME);
  assert.equal(received.state, "active");
});

testWithBroker("a forwarded message has the number of its first entity", "target", async (target, { client }) => {
  await target.send(message("first in the target"));
  await new Queue(client, "forward").send(message());
  const [plain, forwarded] = await receive(target.receiver(), 2);
  assertAnnotations(plain, ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL);
  assertAnnotations(forwarded, ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL, ENQUEUED_SEQUENCE_NUMBER);
  assert.deepEqual([Number(forwarded.sequenceNumber), Number(forwarded.enqueuedSequenceNumber)], [2, 1]);
});

testWithBroker("the sender's annotations arrive", "orders", async (queue) => {
  const deliveryAnnotations = { "x-of-the-delivery": 7, list: ["a", true] };
  await queue.send(annotated({ deliveryAnnotations, messageAnnotations: { "x-of-the-message": "text" } }));
  const receiver = queue.receiver();
  const [peeked] = await receiver.peekMessages(1, { fromSequenceNumber: Long.ONE });
  assert.deepEqual(peeked._rawAmqpMessage.deliveryAnnotations, deliveryAnnotations);
  const received = await receiveOne(receiver);
  assertAnnotations(received, ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL, "x-of-the-message");
  assert.equal(annotatedToken(received), tokenOf(received));
  const { [LOCK_TOKEN]: _, ...rest } = received._rawAmqpMessage.deliveryAnnotations;
  assert.deepEqual(rest, deliveryAnnotations);
  await receiver.abandonMessage(received);
  const [taken] = await queue.take();
  assert.deepEqual(taken._rawAmqpMessage.deliveryAnnotations, deliveryAnnotations);
});

testWithBroker("the broker's lock token replaces one that came along", "orders", async (queue) => {
  await queue.send(annotated({ deliveryAnnotations: { [LOCK_TOKEN]: "mine", "x-other": 1 } }));
  const receiver = queue.receiver();
  const received = await receiveOne(receiver);
  assertDeliveryAnnotations(received, LOCK_TOKEN, "x-other");
  assert.equal(annotatedToken(received), tokenOf(received));
  await receiver.completeMessage(received);
});

// The SDK writes the footer before the body.
testWithBroker("a footer arrives with the body before which it was written", "orders", async (queue) => {
  await queue.send(annotated({ footer: { checksum: 17, "x-sealed": true } }));
  const received = await receiveOne(queue.receiver());
  assert.equal(received.body, "annotated");
  assert.deepEqual(received._rawAmqpMessage.footer, { checksum: 17, "x-sealed": true });
});

/** A body of no section: left out, it would be the value null. */
const NO_BODY = { collect_sections() {} };

/** Sends a message by the AMQP client under the SDK, which by itself sends a body always. */
async function sendByAmqp(broker, queue, sent) {
  const [, host, port] = /sb:\/\/([^:]+):(\d+)/.exec(broker.connectionString);
  const login = { username: "RootManageSharedAccessKey", password: "SAS_KEY_VALUE" };
  const connection = rhea.create_container().connect({ host, port: Number(port), reconnect: false, ...login });
  const sender = connection.open_sender(queue.name);
  await once(sender, "sendable");
  sender.send(sent);
  await once(sender, "accepted");
  connection.close();
  await once(connection, "connection_close");
}

testWithBroker("a message without a body arrives without one", "orders", async (queue, { broker }) => {
  await sendByAmqp(broker, queue, { application_properties: { kind: "signal" }, body: NO_BODY });
  const receiver = queue.receiver();
  const [peeked] = await receiver.peekMessages(1, { fromSequenceNumber: Long.ONE });
  const deferred = await deferAndReceive(receiver);
  for (const one of [peeked, deferred]) {
    assert.equal(one.body, undefined);
    assert.deepEqual(one.applicationProperties, { kind: "signal" });
  }
  await receiver.abandonMessage(deferred);
  const [again] = await receiver.receiveDeferredMessages(deferred.sequenceNumber);
  await receiver.completeMessage(again);
  assert.ok(await queue.isEmpty());
});

testWithBroker("a received message is sent again and arrives as it was", "orders", async (queue, { client }) => {
  const sent = message({ text: "a" }, { subject: "orders", applicationProperties: { colour: "red" } });
  await queue.send(sent);
  const receiver = queue.receiver();
  const first = await receiveOne(receiver);
  await client.createSender(queue.name).sendMessages(first);
  await receiver.completeMessage(first);
  const second = await receiveOne(receiver);
  for (const [name, value] of Object.entries(sent)) assert.deepEqual(second[name], value, name);
  assertAnnotations(second, ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL);
});
