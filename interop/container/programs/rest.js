"use strict";

// What a user of azure-sb 0.11.2, a library over REST, writes. The argument is the name of a function here; what it has seen
// is printed as JSON.

const azure = require("azure-sb");

const STRING = process.env.RAILBUS_CONNECTION_STRING;

/** A function that calls the library's method of that name, and promises its result. */
function connect(connectionString = STRING) {
  const service = azure.createServiceBusService(connectionString);
  return (method, ...options) =>
    new Promise((resolve, reject) => {
      service[method](...options, (error, result) => (error ? reject(error) : resolve(result)));
    });
}

const LOCKED = { isPeekLock: true, timeoutIntervalInS: 30 };

async function queue() {
  const service = connect();
  const created = await service("createQueue", "orders", { LockDuration: "PT30S", MaxDeliveryCount: 2 });
  const again = await service("createQueueIfNotExists", "orders");
  const shown = await service("getQueue", "orders");
  const listed = (await service("listQueues")).map((it) => it.QueueName).filter((name) => name === "orders");
  await service("sendQueueMessage", "orders", {
    body: "by REST",
    customProperties: { color: "red", size: 3 },
    brokerProperties: { Label: "new" },
  });
  const locked = await service("receiveQueueMessage", "orders", LOCKED);
  await service("renewLockForMessage", locked);
  await service("unlockMessage", locked);
  const unlocked = await service("receiveQueueMessage", "orders", LOCKED);
  await service("deleteMessage", unlocked);
  const left = (await service("getQueue", "orders")).MessageCount;
  await service("deleteQueue", "orders");
  const names = (await service("listQueues")).map((it) => it.QueueName);
  return {
    created: [created.QueueName === "orders", again],
    listed,
    settings: [shown.LockDuration, Number(shown.MaxDeliveryCount)],
    message: [
      locked.body,
      locked.contentType,
      locked.brokerProperties.Label,
      locked.customProperties.color,
      locked.customProperties.size,
    ],
    deliveries: [locked, unlocked].map((it) => it.brokerProperties.DeliveryCount),
    left: Number(left),
    gone: !names.includes("orders"),
  };
}

async function topic() {
  const service = connect();
  await service("createTopic", "prices");
  await service("createSubscription", "prices", "cheap");
  await service("createRule", "prices", "cheap", "low", { sqlExpressionFilter: "price < 10" });
  await service("deleteRule", "prices", "cheap", "$Default");
  for (const price of [50, 5]) {
    await service("sendTopicMessage", "prices", { body: String(price), customProperties: { price } });
  }
  const received = await service("receiveSubscriptionMessage", "prices", "cheap", LOCKED);
  await service("deleteMessage", received);
  const seen = {
    rules: (await service("listRules", "prices", "cheap")).map((it) => [it.RuleName, it.Filter.SqlExpression]),
    subscriptions: (await service("listSubscriptions", "prices")).map((it) => it.SubscriptionName),
    received: received.body,
    left: Number((await service("getSubscription", "prices", "cheap")).MessageCount),
  };
  await service("deleteSubscription", "prices", "cheap");
  await service("deleteTopic", "prices");
  return seen;
}

async function refused() {
  const service = connect();
  const wrong = connect(STRING.replace(/SharedAccessKey=[^;]*/, "SharedAccessKey=wrong"));
  return {
    missing: await status(service("deleteQueue", "missing")),
    name: await status(service("createQueue", "a b")),
    key: await status(wrong("listQueues")),
  };
}

/** The status of the answer by which an attempt is refused. */
function status(attempt) {
  return attempt.then(
    () => null,
    (error) => error.statusCode,
  );
}

async function send() {
  await connect()("sendQueueMessage", "orders", { body: "by REST", brokerProperties: { Label: "new" } });
  return null;
}

async function receive() {
  const service = connect();
  const received = await service("receiveQueueMessage", "orders", LOCKED);
  await service("deleteMessage", received);
  return [received.body, received.brokerProperties.Label];
}

const [, , name] = process.argv;
const functions = { queue, topic, refused, send, receive };
functions[name]().then((seen) => console.log(JSON.stringify(seen)));
