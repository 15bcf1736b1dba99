"use strict";

// Administers, sends and receives by a connection string that has neither a port nor the flag of the emulator.

const { ServiceBusAdministrationClient, ServiceBusClient } = require("@azure/service-bus");

async function main() {
  const connectionString = process.env.RAILBUS_CONNECTION_STRING;
  await new ServiceBusAdministrationClient(connectionString).createQueue("orders");
  const client = new ServiceBusClient(connectionString);
  await client.createSender("orders").sendMessages({ body: "by name" });
  const receiver = client.createReceiver("orders");
  const [received] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 30_000 });
  await receiver.completeMessage(received);
  await client.close();
  console.log(received.body);
}

main();
