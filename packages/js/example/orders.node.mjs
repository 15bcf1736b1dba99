// Tests of a program that uses Azure Service Bus, without it: node:test.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ServiceBusClient } from "@azure/service-bus";
import { useBroker } from "railbus/node-test";
import { isEmpty, receive } from "./receive.mjs";

const DAY = 24 * 3600 * 1000;
describe("orders", () => {
  const railbus = useBroker({ entities: "Config.json" });
  let client;
  before(() => {
    client = new ServiceBusClient(railbus.broker.connectionString);
  });
  after(() => client.close());

  test("an order arrives", async () => {
    await client.createSender("orders").sendMessages({ body: "one espresso" });
    assert.deepEqual(await receive(client), ["one espresso"]);
  });

  test("an order that stays for a day is a dead letter", async () => {
    await client.createSender("orders").sendMessages({ body: "one espresso" });
    await railbus.broker.advance(DAY);
    assert.ok(await isEmpty(client));
    assert.deepEqual(await receive(client, { subQueueType: "deadLetter" }), ["one espresso"]);
  });
});
