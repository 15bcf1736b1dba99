// Subscriptions: actions and correlation filters, a copy's own life, forwarding, and what waits at the topic.
"use strict";

const assert = require("node:assert/strict");
const { after, before, test } = require("node:test");
const { Queue, connect, idsOf, message, receive, receiveOne } = require("./support.js");
const { Broker } = require("./virtual-clock.js");

let broker;
let client;

before(async () => {
  broker = await Broker.start("topics.json");
  client = connect({}, broker.connectionString);
});

after(async () => {
  await client.close();
  await broker.stop();
});

const order = (applicationProperties, subject = "order") => message("body", { subject, applicationProperties });

async function publish(...messages) {
  const sender = client.createSender("events");
  await sender.sendMessages(messages);
  await sender.close();
}

/** Uses a receiver of a subscription that renews no locks. */
async function from(subscription, steps, options = {}) {
  const receiver = client.createReceiver("events", subscription, options);
  const result = await steps(receiver);
  await receiver.close();
  return result;
}

function take(subscription, count, options) {
  return from(subscription, (receiver) => receive(receiver, count), { receiveMode: "receiveAndDelete", ...options });
}

const peek = (subscription) => from(subscription, (receiver) => receiver.peekMessages(100));

test("an action changes the copy of its subscription alone", async () => {
  const sent = order({ amount: 500 });
  await publish(sent);
  const [changed] = await take("big", 1);
  assert.equal(changed.messageId, sent.messageId);
  assert.equal(changed.subject, "big order");
  assert.deepEqual(changed.applicationProperties, { amount: 500, priority: "high", RuleName: "amount" });
  const [unchanged] = await take("all", 1);
  assert.equal(unchanged.subject, "order");
  assert.equal(unchanged.applicationProperties.priority, undefined);
});

test("a correlation filter selects by all that it names", async () => {
  const wanted = order({ colour: "red" });
  await publish(order({ colour: "blue" }), order({ colour: "red" }, "offer"), order({}), wanted);
  assert.deepEqual(idsOf(await take("red", 1)), [wanted.messageId]);
  assert.deepEqual(await peek("red"), []);
  await take("all", 4);
});

test("a copy is locked, abandoned and dead-lettered like a queue's message", async () => {
  const sent = message("again");
  await publish(sent);
  await from("all", async (receiver) => {
    for (const count of [0, 1]) {
      const received = await receiveOne(receiver);
      assert.equal(received.deliveryCount, count);
      await receiver.abandonMessage(received);
    }
  });
  const [dead] = await take("all", 1, { subQueueType: "deadLetter" });
  assert.equal(dead.messageId, sent.messageId);
  assert.equal(dead.deadLetterReason, "MaxDeliveryCountExceeded");
});

test("a subscription forwards to a queue", async () => {
  const kept = order({}, "archived");
  await publish(kept);
  assert.deepEqual(idsOf(await new Queue(client, "archive").take()), [kept.messageId]);
  await take("all", 1);
});

test("what is scheduled waits at the topic", async () => {
  const kept = message("kept");
  const later = new Date(Date.now() + 3_600_000);
  const sender = client.createSender("events");
  await sender.scheduleMessages(kept, later);
  await sender.cancelScheduledMessages(await sender.scheduleMessages(message("cancelled"), later));
  assert.deepEqual(await peek("all"), []);
  await broker.advance("PT61M");
  assert.deepEqual(idsOf(await take("all", 1)), [kept.messageId]);
  assert.deepEqual(await peek("all"), []);
  await sender.close();
});
