// Entities and rules by the administration client, every property of them, over HTTPS. The broker's
// certificate authority is told to Node by NODE_EXTRA_CA_CERTS.
"use strict";

const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const test = require("node:test");
const { ServiceBusAdministrationClient } = require("@azure/service-bus");
const { PREFIX, connect, connectionString, receiveOne } = require("./support.js");

const admin = new ServiceBusAdministrationClient(connectionString);

/** A name that no other test or run has used. */
const fresh = (what) => `${PREFIX}-${what}-${randomUUID().slice(0, 12)}`;

const rule = {
  claimType: "SharedAccessKey",
  accessRights: ["Manage", "Send", "Listen"],
  keyName: "all",
  primaryKey: "5DbsbZW1NbEDk2bCCuo8cIzGN1Pd8NTv6r2IoRVWJV0=",
  secondaryKey: "rgH8WyRMpHbhVNR3uBRR6pmmwLIyyhqr4cYPHmPfyDY=",
};

/** The properties of `given` are those of `found`. */
function same(found, given) {
  for (const [name, value] of Object.entries(given)) assert.deepEqual(found[name], value, name);
}

/** Gives an entity one new value after the other, and looks whether it has it. */
async function change(found, changes, update, get) {
  for (const [name, value] of Object.entries(changes)) {
    await update({ ...found, [name]: value });
    found = await get();
    assert.deepEqual(found[name], value, name);
  }
  same(found, changes);
}

test("every property of a queue comes back", async () => {
  const name = fresh("queue");
  const given = {
    lockDuration: "PT13S",
    maxSizeInMegabytes: 2048,
    requiresDuplicateDetection: true,
    requiresSession: true,
    defaultMessageTimeToLive: "P1DT5S",
    deadLetteringOnMessageExpiration: true,
    duplicateDetectionHistoryTimeWindow: "PT5M",
    maxDeliveryCount: 17,
    enableBatchedOperations: false,
    authorizationRules: [rule],
    status: "Active",
    userMetadata: "a <b> & \"c\" ä",
    autoDeleteOnIdle: "PT1H",
    enablePartitioning: false,
    enableExpress: false,
    maxMessageSizeInKilobytes: 2048,
  };
  same(await admin.createQueue(name, given), { name, ...given });
  const get = () => admin.getQueue(name);
  const found = await get();
  same(found, { name, ...given, availabilityStatus: "Available" });
  const changes = {
    lockDuration: "PT14S",
    maxSizeInMegabytes: 3072,
    defaultMessageTimeToLive: "PT2H",
    deadLetteringOnMessageExpiration: false,
    duplicateDetectionHistoryTimeWindow: "PT6M",
    maxDeliveryCount: 18,
    enableBatchedOperations: true,
    authorizationRules: [{ ...rule, accessRights: ["Send"] }],
    status: "SendDisabled",
    userMetadata: "other",
    autoDeleteOnIdle: "PT2H",
    maxMessageSizeInKilobytes: 3072,
  };
  await change(found, changes, (queue) => admin.updateQueue(queue), get);
  assert.equal(await admin.queueExists(name), true);
  await admin.deleteQueue(name);
  assert.equal(await admin.queueExists(name), false);
});

test("a queue forwards and dead-letters to others", async () => {
  const [name, target] = [fresh("forward"), fresh("target")];
  await admin.createQueue(target);
  const made = await admin.createQueue(name, { forwardTo: target, forwardDeadLetteredMessagesTo: target });
  assert.ok(made.forwardTo.endsWith(`/${target}`), made.forwardTo);
  const found = await admin.getQueue(name);
  assert.ok(found.forwardDeadLetteredMessagesTo.endsWith(`/${target}`));
  await admin.updateQueue({ ...found, forwardTo: undefined });
  assert.equal((await admin.getQueue(name)).forwardTo, undefined);
  const missing = admin.createQueue(fresh("nowhere"), { forwardTo: fresh("missing") });
  await assert.rejects(missing, { code: "MessageEntityNotFoundError" });
  await admin.deleteQueue(name);
  await admin.deleteQueue(target);
});

test("express and partitioned entities are shown as such", async () => {
  const name = fresh("express");
  const given = { enableExpress: true, enablePartitioning: true };
  same(await admin.createQueue(name, given), { ...given, maxSizeInMegabytes: 16 * 1024 });
  await admin.deleteQueue(name);
  await admin.createTopic(name, given);
  same(await admin.getTopic(name), given);
  await admin.deleteTopic(name);
});

test("every property of a topic comes back", async () => {
  const name = fresh("topic");
  const given = {
    defaultMessageTimeToLive: "PT1H",
    maxSizeInMegabytes: 4096,
    requiresDuplicateDetection: true,
    duplicateDetectionHistoryTimeWindow: "PT5M",
    enableBatchedOperations: false,
    authorizationRules: [rule],
    status: "Active",
    userMetadata: "mine",
    supportOrdering: false,
    autoDeleteOnIdle: "PT1H",
    enablePartitioning: false,
    enableExpress: false,
    maxMessageSizeInKilobytes: 2048,
  };
  same(await admin.createTopic(name, given), { name, ...given });
  const get = () => admin.getTopic(name);
  const found = await get();
  same(found, { name, ...given });
  const changes = {
    defaultMessageTimeToLive: "PT2H",
    maxSizeInMegabytes: 5120,
    duplicateDetectionHistoryTimeWindow: "PT6M",
    enableBatchedOperations: true,
    authorizationRules: [{ ...rule, keyName: "other" }],
    status: "Disabled",
    userMetadata: "yours",
    supportOrdering: true,
    autoDeleteOnIdle: "PT2H",
    maxMessageSizeInKilobytes: 3072,
  };
  await change(found, changes, (topic) => admin.updateTopic(topic), get);
  await admin.deleteTopic(name);
  assert.equal(await admin.topicExists(name), false);
});

test("every property of a subscription comes back", async () => {
  const [topic, name, target] = [fresh("topic"), fresh("sub"), fresh("target")];
  await admin.createQueue(target);
  await admin.createTopic(topic);
  const given = {
    lockDuration: "PT20S",
    requiresSession: true,
    defaultMessageTimeToLive: "PT1H",
    deadLetteringOnMessageExpiration: true,
    deadLetteringOnFilterEvaluationExceptions: false,
    maxDeliveryCount: 4,
    enableBatchedOperations: false,
    status: "Active",
    userMetadata: "mine",
    autoDeleteOnIdle: "PT1H",
  };
  const names = { topicName: topic, subscriptionName: name };
  same(await admin.createSubscription(topic, name, given), { ...names, ...given });
  const get = () => admin.getSubscription(topic, name);
  const found = await get();
  same(found, { ...names, ...given });
  const changes = {
    lockDuration: "PT21S",
    defaultMessageTimeToLive: "PT2H",
    deadLetteringOnMessageExpiration: false,
    deadLetteringOnFilterEvaluationExceptions: true,
    maxDeliveryCount: 5,
    enableBatchedOperations: true,
    status: "ReceiveDisabled",
    userMetadata: "yours",
    autoDeleteOnIdle: "PT2H",
  };
  const update = (subscription) => admin.updateSubscription(subscription);
  await change(found, changes, update, get);
  await update({ ...(await get()), forwardDeadLetteredMessagesTo: target });
  assert.ok((await get()).forwardDeadLetteredMessagesTo.endsWith(`/${target}`));
  await admin.deleteSubscription(topic, name);
  assert.equal(await admin.subscriptionExists(topic, name), false);
  await admin.deleteTopic(topic);
  await admin.deleteQueue(target);
});

test("filters of every kind come back", async () => {
  const topic = fresh("rules");
  await admin.createTopic(topic);
  const only = { name: "only", filter: { subject: "red" }, action: { sqlExpression: "SET a = 1" } };
  await admin.createSubscription(topic, "given", { defaultRuleOptions: only });
  const [first, ...rest] = await all(admin.listRules(topic, "given"));
  assert.deepEqual([first.name, first.filter.subject, first.action.sqlExpression, rest], ["only", "red", "SET a = 1", []]);
  await admin.createSubscription(topic, "s");
  const applicationProperties = { text: "blue & <red>", number: 2.5, whole: 5, yes: true, date: new Date(1593947533000) };
  const filters = {
    sql: { sqlExpression: "n > 5 AND color = 'blue'" },
    parameters: { sqlExpression: "n > @n", sqlParameters: { "@n": 5, "@text": "x" } },
    fields: {
      correlationId: "c", messageId: "m", to: "t", replyTo: "r", subject: "l",
      sessionId: "s", replyToSessionId: "rs", contentType: "ct",
    },
    properties: { applicationProperties },
  };
  for (const [name, filter] of Object.entries(filters)) {
    await admin.createRule(topic, "s", name, filter);
    same((await admin.getRule(topic, "s", name)).filter, filter);
  }
  const names = (await all(admin.listRules(topic, "s"))).map((one) => one.name);
  assert.deepEqual(names, ["$Default", "fields", "parameters", "properties", "sql"]);
  const found = await admin.getRule(topic, "s", "sql");
  await admin.updateRule(topic, "s", { ...found, action: { sqlExpression: "SET b = 2" } });
  assert.equal((await admin.getRule(topic, "s", "sql")).action.sqlExpression, "SET b = 2");
  await admin.deleteRule(topic, "s", "sql");
  assert.equal(await admin.ruleExists(topic, "s", "sql"), false);
  await assert.rejects(admin.createRule(topic, "s", "bad", { sqlExpression: "n >" }), { code: "ServiceError" });
  await admin.deleteTopic(topic);
});

async function all(pages) {
  const found = [];
  for await (const one of pages) found.push(one);
  return found;
}

test("lists have every name once", async () => {
  const names = Array.from({ length: 120 }, () => fresh("many")).sort();
  await Promise.all(names.map((name) => admin.createQueue(name)));
  const listed = (await all(admin.listQueues())).map((queue) => queue.name);
  assert.deepEqual(listed.filter((name) => names.includes(name)), names);
  const pages = admin.listQueuesRuntimeProperties().byPage({ maxPageSize: 7 });
  const counted = (await all(pages)).flat().map((queue) => queue.name);
  assert.deepEqual(counted.filter((name) => names.includes(name)), names);
  await Promise.all(names.map((name) => admin.deleteQueue(name)));
});

test("runtime properties are those of the moment", async () => {
  const [queue, topic] = [fresh("queue"), fresh("topic")];
  await admin.createQueue(queue);
  await admin.createTopic(topic);
  await admin.createSubscription(topic, "s");
  const counts = {
    totalMessageCount: 0,
    activeMessageCount: 0,
    deadLetterMessageCount: 0,
    scheduledMessageCount: 0,
    transferMessageCount: 0,
    transferDeadLetterMessageCount: 0,
    sizeInBytes: 0,
  };
  same(await admin.getQueueRuntimeProperties(queue), counts);
  same(await admin.getTopicRuntimeProperties(topic), { subscriptionCount: 1, scheduledMessageCount: 0 });
  same(await admin.getSubscriptionRuntimeProperties(topic, "s"), { totalMessageCount: 0 });
  await admin.deleteTopic(topic);
  await admin.deleteQueue(queue);
});

test("of many who create the same one succeeds", async () => {
  const name = fresh("race");
  const attempts = Array.from({ length: 8 }, () => admin.createQueue(name));
  const codes = (await Promise.allSettled(attempts)).map(({ reason }) => reason?.code ?? "created");
  assert.deepEqual(codes.sort(), [...Array(7).fill("MessageEntityAlreadyExistsError"), "created"]);
  await admin.deleteQueue(name);
});

test("what is missing or wrong is the error for that", async () => {
  const missing = fresh("missing");
  const notFound = { code: "MessageEntityNotFoundError" };
  for (const ask of ["getQueue", "getTopic", "getQueueRuntimeProperties", "deleteQueue"]) {
    await assert.rejects(admin[ask](missing), notFound, ask);
  }
  await assert.rejects(admin.createSubscription(missing, "s"), notFound);
  await assert.rejects(admin.createQueue(missing, { lockDuration: "PT6M" }), { code: "ServiceError" });
  const wrongKey = new ServiceBusAdministrationClient(connectionString.replace("SAS_KEY_VALUE", "WRONG_KEY_VALUE"));
  await assert.rejects(wrongKey.getNamespaceProperties(), { code: "UnauthorizedRequestError" });
});

test("names have tildes, and begin and end with marks", async () => {
  for (const mark of "~-_.") {
    const [topic, subscription] = [`${mark}${fresh("marks")}${mark}`, `${mark}s${mark}`];
    await admin.createTopic(topic);
    await admin.createSubscription(topic, subscription);
    await admin.createRule(topic, subscription, mark === "~" ? "rule" : `${mark}r${mark}`, { sqlExpression: "1 = 1" });
    assert.equal((await admin.getTopic(topic)).name, topic);
    assert.equal((await admin.getSubscription(topic, subscription)).subscriptionName, subscription);
    const client = connect();
    await client.createSender(topic).sendMessages({ body: mark });
    const receiver = client.createReceiver(topic, subscription);
    const received = await receiveOne(receiver);
    assert.equal(received.body, mark);
    await receiver.completeMessage(received);
    await client.close();
    await admin.deleteTopic(topic);
  }
});

test("a name that cannot be is refused and makes nothing", async () => {
  for (const name of ["a b", "a!b", "a//b", "$a", "a".repeat(261)]) {
    await assert.rejects(admin.createQueue(name), { statusCode: 400 }, name);
    assert.equal(await admin.queueExists(name), false, name);
  }
});

test("an unknown name that begins with a dollar is not found", async () => {
  const name = "$nservicebus-verification-queue";
  for (const ask of ["getQueue", "getTopic", "deleteQueue"]) {
    await assert.rejects(admin[ask](name), { code: "MessageEntityNotFoundError" }, ask);
  }
  assert.equal(await admin.queueExists(name), false);
});

test("the namespace says what it is", async () => {
  const found = await admin.getNamespaceProperties();
  assert.ok(found.name);
  assert.equal(found.messagingSku, "Premium");
});
