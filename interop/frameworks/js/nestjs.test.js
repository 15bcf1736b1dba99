// NestJS: a microservice over the Service Bus transporter, with a controller for a queue and one for a
// subscription, and a client that emits events and asks for answers. Decorators are applied by hand, as
// the TypeScript compiler would.
"use strict";

require("reflect-metadata");
const assert = require("node:assert/strict");
const { EventEmitter, once } = require("node:events");
const { Controller, Module } = require("@nestjs/common");
const { NestFactory } = require("@nestjs/core");
const { Ctx, Payload } = require("@nestjs/microservices");
const {
  AzureServiceBusModule,
  AzureServiceBusServer,
  Queue,
  Topic,
} = require("nestjs-azure-service-bus-transporter");
const { firstValueFrom } = require("rxjs");
const { connectionString, counts, eventually, test } = require("./support.js");

/** A controller class whose method `handle` has `decorator`. */
function controller(decorator, handle) {
  class Handler {
    handle(message, context) {
      return handle(message, context);
    }
  }
  const prototype = Handler.prototype;
  decorator(prototype, "handle", Object.getOwnPropertyDescriptor(prototype, "handle"));
  Payload()(prototype, "handle", 0);
  Ctx()(prototype, "handle", 1);
  Controller()(Handler);
  return Handler;
}

/** Runs a microservice with `controllers`, and a client of the same module, for the time of `body`. */
async function serving(controllers, body) {
  class AppModule {}
  const client = AzureServiceBusModule.forRoot([{ name: "SB_CLIENT", connectionString, options: {} }]);
  Module({ imports: [client], controllers })(AppModule);
  const strategy = new AzureServiceBusServer({ connectionString, options: {} });
  const app = await NestFactory.createMicroservice(AppModule, { strategy, logger: ["error"] });
  await app.listen();
  try {
    await body(app.get("SB_CLIENT"));
  } finally {
    await app.get("SB_CLIENT").close();
    await app.close();
  }
}

const emptied = (queue) => eventually(async () => (await counts(queue)).active === 0, "completion");

test("NestJS: an event reaches the handler of its queue", async (entities) => {
  const queue = await entities.queue();
  const inbox = new EventEmitter();
  const handler = controller(Queue({ queueName: queue, receiveMode: "peekLock" }), (message) => {
    inbox.emit("message", message.body);
  });
  await serving([handler], async (client) => {
    const arrived = once(inbox, "message");
    client.emit({ name: queue, options: {} }, { body: { order: 1 } });
    assert.deepEqual(await arrived, [{ order: 1 }]);
    await emptied(queue);
  });
});

test("NestJS: an event reaches the handler of a subscription", async (entities) => {
  const topic = await entities.topic();
  const inbox = new EventEmitter();
  const decorator = Topic({ topic, subscription: "all", receiveMode: "peekLock" });
  const handler = controller(decorator, (message) => {
    inbox.emit("message", message.body);
  });
  await serving([handler], async (client) => {
    const arrived = once(inbox, "message");
    client.emit({ name: topic, options: {} }, { body: "event" });
    assert.deepEqual(await arrived, ["event"]);
  });
});

test("NestJS: a message that its handler gives back comes again", async (entities) => {
  const queue = await entities.queue();
  const deliveries = [];
  const options = { autoCompleteMessages: false };
  const handler = controller(Queue({ queueName: queue, receiveMode: "peekLock", options }), async (message, context) => {
    const [receiver] = context.getArgs();
    deliveries.push(message.deliveryCount);
    if (deliveries.length === 1) await receiver.abandonMessage(message);
    else await receiver.completeMessage(message);
  });
  await serving([handler], async (client) => {
    client.emit({ name: queue, options: {} }, { body: "again" });
    await eventually(() => deliveries.length === 2, "the second delivery");
    await emptied(queue);
    assert.deepEqual(deliveries, [0, 1]);
  });
});

test("NestJS: a request is answered", async (entities) => {
  const queue = await entities.queue();
  await entities.queue({}, `${queue}.reply`);
  const handler = controller(Queue({ queueName: queue, receiveMode: "peekLock" }), ({ body }) => ({ answer: body * 2 }));
  await serving([handler], async (client) => {
    const answer = await firstValueFrom(client.send({ name: queue, options: {} }, { body: 21 }));
    assert.deepEqual(answer, { answer: 42 });
  });
});
