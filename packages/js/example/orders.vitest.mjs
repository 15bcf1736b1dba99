// Tests of a program that uses Azure Service Bus, without it: vitest.

import { ServiceBusClient } from "@azure/service-bus";
import { useBroker } from "railbus/vitest";
import { expect, test } from "vitest";
import { receive } from "./receive.mjs";

const railbus = useBroker({ entities: "Config.json" });

test("an order arrives", async () => {
  const client = new ServiceBusClient(railbus.broker.connectionString);
  await client.createSender("orders").sendMessages({ body: "one espresso" });
  expect(await receive(client)).toEqual(["one espresso"]);
  await client.close();
});
