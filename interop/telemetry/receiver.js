// Receives the message of a queue and dead-letters it. Prints its application properties as JSON.
const { ServiceBusClient } = require("@azure/service-bus");

async function main() {
  const [connectionString, queue] = process.argv.slice(2);
  const client = new ServiceBusClient(connectionString);
  const receiver = client.createReceiver(queue);
  const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 60_000 });
  await receiver.deadLetterMessage(message, {
    deadLetterReason: "spoilt",
    deadLetterErrorDescription: "it smells",
  });
  console.log(JSON.stringify(message.applicationProperties));
  await client.close();
}

main();
