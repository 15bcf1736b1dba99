// What each test of the suites does, with the same queues and the same message ids.

import { ServiceBusClient } from "@azure/service-bus";
import Long from "long";
import { expect } from "vitest";

/** Leaves a message and a dead letter behind, for a test that would see them. */
export async function seesOnlyItsOwnMessages(namespace, test) {
  const bodies = [0, 1, 2].map((number) => `${test} ${number}`);
  const client = new ServiceBusClient(namespace.connectionString);
  await client.createSender("orders").sendMessages(bodies.map((body, id) => ({ body, messageId: String(id) })));
  const receiver = client.createReceiver("orders");
  const peeked = async (options) => (await receiver.peekMessages(10, options)).map((message) => message.body);
  expect(await peeked()).toEqual(bodies);
  const [first] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 30_000 });
  expect([first.body, first.sequenceNumber.toString()]).toEqual([bodies[0], "1"]);
  await receiver.deadLetterMessage(first, { deadLetterReason: test });
  expect(await peeked({ fromSequenceNumber: first.sequenceNumber })).toEqual(bodies.slice(1));
  const dead = client.createReceiver("orders", { subQueueType: "deadLetter" });
  expect((await dead.peekMessages(10)).map((message) => message.deadLetterReason)).toEqual([test]);
  await client.close();
}

/** Lets hours pass, and others than its neighbours: a time to live ends, and another does not. */
export async function seesOnlyItsOwnTime(namespace, number) {
  const hours = number + 1;
  const client = new ServiceBusClient(namespace.connectionString);
  await client.createSender("timed").sendMessages([
    { body: "short", timeToLive: hours * 3_600_000 },
    { body: "long", timeToLive: (hours + 1) * 3_600_000 },
  ]);
  const receiver = client.createReceiver("timed");
  const peeked = async (options) => (await receiver.peekMessages(10, options)).map((message) => message.body);
  expect(await peeked()).toEqual(["short", "long"]);
  await namespace.advance(`PT${hours}H`);
  expect(await peeked({ fromSequenceNumber: Long.ONE })).toEqual(["long"]);
  await client.close();
}
