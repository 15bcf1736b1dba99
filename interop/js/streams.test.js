// Messages taken by iteration and by handlers, of queues and of sessions, and batches that are full.
"use strict";

const assert = require("node:assert/strict");
const { eventually, idsOf, message } = require("./support.js");
const { testWithBroker } = require("./own-broker.js");

const quiet = { maxAutoLockRenewalDurationInMs: 0 };
const numbered = (count) => Array.from({ length: count }, (_, number) => message(`number ${number}`));
const bodiesOf = (received) => received.map((one) => one.body);

testWithBroker("an iterator gets every message", "orders", async (queue) => {
  const sent = numbered(10);
  await queue.send(...sent);
  const receiver = queue.receiver();
  const got = [];
  for await (const one of receiver.getMessageIterator()) {
    got.push(one);
    await receiver.completeMessage(one);
    if (got.length === sent.length) break;
  }
  assert.deepEqual(bodiesOf(got), bodiesOf(sent));
  assert.ok(await queue.isEmpty());
});

testWithBroker("an iterator gets what is sent while it waits", "orders", async (queue) => {
  await queue.send(message(0));
  const got = [];
  for await (const one of queue.receiver({ receiveMode: "receiveAndDelete" }).getMessageIterator()) {
    got.push(one.body);
    if (got.length === 5) break;
    await queue.send(message(got.length));
  }
  assert.deepEqual(got, [0, 1, 2, 3, 4]);
  assert.ok(await queue.isEmpty());
});

testWithBroker("a subscribed handler settles each message in its own way", "orders", async (queue) => {
  await queue.send(message("complete"), message("abandon"), message("dead-letter"), message("defer"));
  const receiver = queue.receiver();
  const handled = [];
  const errors = [];
  const settle = {
    complete: (one) => receiver.completeMessage(one),
    abandon: (one) => (one.deliveryCount === 0 ? receiver.abandonMessage(one) : receiver.completeMessage(one)),
    "dead-letter": (one) => receiver.deadLetterMessage(one, { deadLetterReason: "as told" }),
    defer: (one) => receiver.deferMessage(one),
  };
  const subscription = receiver.subscribe(
    {
      processMessage: async (one) => {
        await settle[one.body](one);
        handled.push(one.body);
      },
      processError: async ({ error }) => errors.push(error),
    },
    { autoCompleteMessages: false },
  );
  await eventually(() => handled.length === 5, "the handling of all messages");
  await subscription.close();
  assert.deepEqual(errors, []);
  assert.deepEqual(handled.filter((body) => body === "abandon").length, 2);
  assert.deepEqual((await queue.peek()).map((one) => [one.body, one.state]), [["defer", "deferred"]]);
  assert.deepEqual(bodiesOf(await queue.peekDead()), ["dead-letter"]);
});

testWithBroker("a message whose handler throws is abandoned", "brief", async (queue) => {
  await queue.send(message());
  const counts = [];
  const sources = [];
  const subscription = queue.receiver().subscribe({
    processMessage: async (one) => {
      counts.push(one.deliveryCount);
      throw new Error("not today");
    },
    processError: async ({ errorSource }) => sources.push(errorSource),
  });
  const [dead] = await eventually(async () => {
    const peeked = await queue.peekDead();
    return peeked.length > 0 && peeked;
  }, "the dead-lettering");
  await subscription.close();
  assert.equal(dead.deadLetterReason, "MaxDeliveryCountExceeded");
  assert.deepEqual(counts, [0, 1, 2]);
  assert.deepEqual(new Set(sources), new Set(["processMessageCallback"]));
});

testWithBroker("a subscribed handler gets the messages of its session in order", "sessions", async (queue, { client }) => {
  const inSession = (sessionId) => (one) => ({ ...one, sessionId });
  const sent = numbered(10).map(inSession("a"));
  await queue.send(...numbered(3).map(inSession("b")), ...sent);
  const receiver = await client.acceptSession(queue.name, "a", quiet);
  const handled = [];
  const errors = [];
  const subscription = receiver.subscribe({
    processMessage: async (one) => handled.push(one),
    processError: async ({ error }) => errors.push(error),
  });
  await eventually(async () => (await receiver.peekMessages(1)).length === 0, "the removal of all messages");
  await subscription.close();
  assert.deepEqual(errors, []);
  assert.deepEqual(idsOf(handled), idsOf(sent));
});

testWithBroker("an iterator gets the messages of the next session", "sessions", async (queue, { client }) => {
  await queue.send(message("one", { sessionId: "a" }), message("of another", { sessionId: "b" }));
  await queue.send(message("two", { sessionId: "a" }));
  const receiver = await client.acceptNextSession(queue.name, quiet);
  assert.equal(receiver.sessionId, "a");
  const got = [];
  for await (const one of receiver.getMessageIterator()) {
    got.push(one.body);
    await receiver.completeMessage(one);
    if (got.length === 2) break;
  }
  assert.deepEqual(got, ["one", "two"]);
});

testWithBroker("a full batch takes no more and is sent", "orders", async (queue, { client }) => {
  const sender = client.createSender(queue.name);
  const batch = await sender.createMessageBatch({ maxSizeInBytes: 4096 });
  while (batch.tryAddMessage(message("x".repeat(500))));
  assert.ok(batch.count > 2);
  await sender.sendMessages(batch);
  assert.equal((await queue.take(batch.count)).length, batch.count);
  assert.ok(await queue.isEmpty());
});

testWithBroker("a state of a session is lost to nobody when its lock is", "sessions", async (queue, { broker, client }) => {
  const first = await client.acceptSession(queue.name, "a", quiet);
  await first.setSessionState({ step: 1 });
  await broker.advance("PT5M");
  await assert.rejects(first.setSessionState({ step: 2 }), { code: "SessionLockLost" });
  // The link of a receiver that holds no message ends half a second after its lock.
  await broker.advance("PT0.5S");
  const second = await client.acceptSession(queue.name, "a", quiet);
  assert.deepEqual(await second.getSessionState(), { step: 1 });
});
