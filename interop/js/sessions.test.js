// Sessions: one holder at a time, in order, with a state of its own.
"use strict";

const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const runner = require("node:test");
const { PREFIX, connect, message, receive, receiveOne, waitUntilPassed } = require("./support.js");

const NAME = `${PREFIX}-sessions`;
const quiet = { maxAutoLockRenewalDurationInMs: 0 };

/** A test with a client of its own, and the id of a session that no other test or run has used. */
function test(name, body) {
  runner.test(name, { timeout: 120_000 }, async () => {
    const client = connect({ retryOptions: { maxRetries: 0, timeoutInMs: 5000 } });
    try {
      await body(client, randomUUID());
    } finally {
      await client.close();
    }
  });
}

async function send(client, sessionId, ...bodies) {
  const sender = client.createSender(NAME);
  for (const body of bodies) await sender.sendMessages(message(body, { sessionId }));
  await sender.close();
}

const bodiesOf = (received) => received.map((one) => one.body);

/** Takes what an interrupted run left in any session. */
async function dropAll(client) {
  for (;;) {
    let receiver;
    try {
      receiver = await client.acceptNextSession(NAME, { ...quiet, receiveMode: "receiveAndDelete" });
    } catch (error) {
      assert.equal(error.code, "ServiceTimeout");
      return;
    }
    await receiver.receiveMessages(100, { maxWaitTimeInMs: 1000 });
    await receiver.close();
  }
}

test("a session is accepted by id and comes in order to its holder alone", async (client, session) => {
  const other = randomUUID();
  await send(client, session, "one");
  await send(client, other, "of another");
  await send(client, session, "two", "three");
  const receiver = await client.acceptSession(NAME, session, quiet);
  assert.equal(receiver.sessionId, session);
  const received = await receive(receiver, 3);
  assert.deepEqual(bodiesOf(received), ["one", "two", "three"]);
  await assert.rejects(client.acceptSession(NAME, session, quiet), { code: "SessionCannotBeLocked" });
  for (const one of received) await receiver.completeMessage(one);
  await receiver.close();
  const rest = await client.acceptSession(NAME, other, quiet);
  await rest.completeMessage(await receiveOne(rest));
});

test("ids that differ in letter case are one session", async (client, session) => {
  const ids = [`Order-${session}`, `ORDER-${session}`, `order-${session}`];
  for (const id of ids) await send(client, id, id);
  const asked = `oRDER-${session}`;
  const receiver = await client.acceptSession(NAME, asked, quiet);
  assert.equal(receiver.sessionId, asked);
  const received = await receive(receiver, 3);
  assert.deepEqual(received.map((one) => one.sessionId), ids);
  await receiver.setSessionState("known");
  await assert.rejects(client.acceptSession(NAME, ids[0], quiet), { code: "SessionCannotBeLocked" });
  for (const one of received) await receiver.completeMessage(one);
  await receiver.close();
  const again = await client.acceptSession(NAME, ids[1], quiet);
  assert.equal((await again.getSessionState()).toString(), "known");
  await again.setSessionState(null);
  await again.close();
});

test("the next session is the one whose first message is oldest", async (client, first) => {
  await dropAll(client);
  const second = randomUUID();
  await send(client, first, "one");
  await send(client, second, "two");
  for (const expected of [first, second]) {
    const receiver = await client.acceptNextSession(NAME, quiet);
    assert.equal(receiver.sessionId, expected);
    await receiver.completeMessage(await receiveOne(receiver));
    await receiver.close();
  }
  await assert.rejects(client.acceptNextSession(NAME, quiet), { code: "ServiceTimeout" });
});

test("a state survives its holder", async (client, session) => {
  let receiver = await client.acceptSession(NAME, session, quiet);
  assert.equal(await receiver.getSessionState(), null);
  await receiver.setSessionState({ step: 3, text: "höher" });
  await receiver.close();
  receiver = await client.acceptSession(NAME, session, quiet);
  assert.deepEqual(await receiver.getSessionState(), { step: 3, text: "höher" });
  for (const empty of [null, Buffer.alloc(0)]) {
    await receiver.setSessionState("again");
    await receiver.setSessionState(empty);
    assert.equal(await receiver.getSessionState(), null);
  }
});

test("a renewed session is held longer than its lock", async (client, session) => {
  await send(client, session, "one");
  const receiver = await client.acceptSession(NAME, session, quiet);
  const received = await receiveOne(receiver);
  const end = receiver.sessionLockedUntilUtc;
  await waitUntilPassed(new Date(end.getTime() - 3000));
  assert.ok((await receiver.renewSessionLock()) > end);
  await waitUntilPassed(end);
  await receiver.completeMessage(received);
});

test("a session that is not renewed is lost and its messages come again", async (client, session) => {
  await send(client, session, "one");
  const first = await client.acceptSession(NAME, session, quiet);
  const lost = await receiveOne(first);
  await waitUntilPassed(first.sessionLockedUntilUtc);
  await assert.rejects(first.completeMessage(lost), { code: "SessionLockLost" });
  const second = await client.acceptSession(NAME, session, quiet);
  const again = await receiveOne(second);
  assert.equal(again.deliveryCount, 1);
  await second.completeMessage(again);
});

test("an abandoned message comes before those behind it", async (client, session) => {
  await send(client, session, "one", "two");
  const receiver = await client.acceptSession(NAME, session, quiet);
  await receiver.abandonMessage(await receiveOne(receiver));
  const received = await receive(receiver, 2);
  assert.deepEqual(bodiesOf(received), ["one", "two"]);
  assert.equal(received[0].deliveryCount, 1);
  for (const one of received) await receiver.completeMessage(one);
});

test("deferred and peeked messages are those of the session", async (client, session) => {
  await send(client, session, "one");
  const receiver = await client.acceptSession(NAME, session, quiet);
  const received = await receiveOne(receiver);
  await receiver.deferMessage(received);
  assert.deepEqual(bodiesOf(await receiver.peekMessages(10)), ["one"]);
  const [deferred] = await receiver.receiveDeferredMessages(received.sequenceNumber);
  await receiver.completeMessage(deferred);
});

test("dead letters are received without a session", async (client, session) => {
  await send(client, session, "one");
  const receiver = await client.acceptSession(NAME, session, quiet);
  await receiver.deadLetterMessage(await receiveOne(receiver), { deadLetterReason: "why" });
  const dead = client.createReceiver(NAME, { ...quiet, subQueueType: "deadLetter", receiveMode: "receiveAndDelete" });
  let found;
  do found = await receiveOne(dead);
  while (found.sessionId !== session);
  assert.equal(found.deadLetterReason, "why");
});
