// Tests of a program that uses Azure Service Bus, without it: jest.

const { ServiceBusClient } = require("@azure/service-bus");

test("an order arrives", async () => {
  const client = new ServiceBusClient(railbus.connectionString);
  await client.createSender("orders").sendMessages({ body: "one espresso" });
  const receiver = client.createReceiver("orders");
  const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 10_000 });
  expect(message.body).toBe("one espresso");
  await receiver.completeMessage(message);
  await client.close();
});
