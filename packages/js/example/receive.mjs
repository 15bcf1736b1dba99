// What the examples have in common.

/** The bodies of the messages that are there, which are completed. */
export async function receive(client, options) {
  const receiver = client.createReceiver("orders", options);
  const messages = await receiver.receiveMessages(10, { maxWaitTimeInMs: 10_000 });
  for (const message of messages) await receiver.completeMessage(message);
  await receiver.close();
  return messages.map((message) => message.body);
}

/** Whether no message is there. */
export async function isEmpty(client) {
  const receiver = client.createReceiver("orders");
  const messages = await receiver.peekMessages(1);
  await receiver.close();
  return messages.length === 0;
}
