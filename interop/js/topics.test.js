// Topics: subscriptions that select, the rule manager, and dead letters of one subscription.
"use strict";

const assert = require("node:assert/strict");
const { after, before, test } = require("node:test");
const { connect, message, receiveOne } = require("./support.js");
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

async function publish(topic, ...messages) {
  const sender = client.createSender(topic);
  await sender.sendMessages(messages);
  await sender.close();
}

async function take(topic, subscription, options) {
  const receiver = client.createReceiver(topic, subscription, options);
  const received = await receiveOne(receiver);
  await receiver.completeMessage(received);
  await receiver.close();
  return received;
}

async function rulesOf(manager) {
  const rules = [];
  for await (const rule of manager.listRules()) {
    rules.push(rule);
  }
  return rules;
}

test("filters select and actions change copies", async () => {
  const big = message("body", { subject: "order", applicationProperties: { amount: 500, colour: "red" } });
  await publish("events", big);
  const changed = await take("events", "big");
  assert.equal(changed.messageId, big.messageId);
  assert.equal(changed.subject, "big order");
  assert.equal(changed.applicationProperties.priority, "high");
  const red = await take("events", "red");
  assert.equal(red.subject, "order");
  assert.equal((await take("events", "all")).messageId, big.messageId);
});

test("rules are managed while messages are published", async () => {
  const manager = client.createRuleManager("managed", "rules");
  assert.deepEqual((await rulesOf(manager)).map((rule) => rule.name), ["$Default"]);
  await manager.deleteRule("$Default");
  await manager.createRule("big", { sqlExpression: "amount > 100" }, { sqlExpression: "SET seen = TRUE" });
  await manager.createRule("red", { subject: "red", applicationProperties: { shade: 3 } });
  const rules = await rulesOf(manager);
  assert.deepEqual(rules.map((rule) => rule.name), ["big", "red"]);
  assert.equal(rules[0].filter.sqlExpression, "amount > 100");
  assert.equal(rules[0].action.sqlExpression, "SET seen = TRUE");
  assert.equal(rules[1].filter.subject, "red");
  assert.equal(rules[1].filter.applicationProperties.shade, 3);
  await assert.rejects(manager.createRule("BIG", { sqlExpression: "1=1" }), { code: "MessagingEntityAlreadyExists" });
  await assert.rejects(manager.createRule("bad", { sqlExpression: "amount >" }), /at character/);
  await assert.rejects(manager.deleteRule("none"), { code: "MessagingEntityNotFound" });

  const wanted = message("body", { subject: "red", applicationProperties: { shade: 3 } });
  await publish("managed", message("body", { subject: "red", applicationProperties: { shade: 4 } }), wanted);
  assert.equal((await take("managed", "rules")).messageId, wanted.messageId);
  await manager.deleteRule("red");
  const big = message("body", { subject: "red", applicationProperties: { shade: 3, amount: 101 } });
  await publish("managed", wanted, big);
  const seen = await take("managed", "rules");
  assert.equal(seen.messageId, big.messageId);
  assert.equal(seen.applicationProperties.seen, true);
});

test("a dead letter is its subscription's alone", async () => {
  const poison = message("body", { subject: "order", applicationProperties: { colour: "red" } });
  await publish("events", poison);
  const receiver = client.createReceiver("events", "red");
  await receiver.deadLetterMessage(await receiveOne(receiver), { deadLetterReason: "bad" });
  await receiver.close();
  const dead = await take("events", "red", { subQueueType: "deadLetter" });
  assert.equal(dead.messageId, poison.messageId);
  assert.equal(dead.deadLetterReason, "bad");
  assert.equal((await take("events", "all")).messageId, poison.messageId);
});

test("sessions of a subscription", async () => {
  await publish("events", message("body", { sessionId: "s" }));
  const receiver = await client.acceptNextSession("events", "sessions");
  assert.equal(receiver.sessionId, "s");
  await receiver.setSessionState(Buffer.from("seen"));
  await receiver.completeMessage(await receiveOne(receiver));
  assert.equal((await receiver.getSessionState()).toString(), "seen");
  await receiver.close();
  await take("events", "all");
});
