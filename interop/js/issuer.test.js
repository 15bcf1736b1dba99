// Programs with tokens of a configured issuer: a provider of OpenID Connect, as in production. The SDK asks an ordinary
// credential for its tokens, and a token has the rights that the broker's grants give to its claims. What is refused
// leaves the queue as it was. (docs/spec/amqp.md#2.8)
"use strict";

const assert = require("node:assert/strict");
const WebSocket = require("ws");
const {
  FILE_ISSUER,
  Key,
  OPERATOR,
  READER,
  WRITER,
  credential,
  seconds,
  testWithProvider,
  unsigned,
} = require("./issuer-support.js");
const { Queue, connect, eventually, message, receiveOne } = require("./support.js");

const QUEUE = "orders";
const transports = {
  AMQP: {},
  WebSocket: { webSocketOptions: { webSocket: WebSocket } },
};

const operations = {
  send: (queue) => queue.send(message("by a token")),
  receive: (queue) => queue.receiver().receiveMessages(1, { maxWaitTimeInMs: 5000 }),
};

const queueOf = (broker, of, options, name = QUEUE) => new Queue(broker.client(of, options), name);

/** The queue holds the one message that was there before, which nobody has touched. */
async function assertUntouched(orders) {
  const left = await orders.peek();
  assert.deepEqual(left.map((one) => [one.body, one.deliveryCount]), [["untouched", 0]]);
}

for (const algorithm of ["RS256", "ES256"]) {
  for (const [transport, options] of Object.entries(transports)) {
    testWithProvider(`programs with tokens of a provider send and receive: ${algorithm}, ${transport}`, async (world) => {
      const { broker, provider } = world;
      await operations.send(queueOf(broker, provider.credential(WRITER, algorithm), options));
      const receiver = queueOf(broker, provider.credential(READER, algorithm), options).receiver();
      const received = await receiveOne(receiver);
      assert.equal(received.body, "by a token");
      await receiver.renewMessageLock(received);
      await receiver.completeMessage(received);
      assert.ok(await queueOf(broker, provider.credential(OPERATOR)).isEmpty());
    });
  }
}

testWithProvider("a token has no right beside its grants", async ({ broker, provider }) => {
  const orders = queueOf(broker, provider.credential(OPERATOR));
  await orders.send(message("untouched"));
  for (const [claims, operation, name] of [
    [WRITER, "receive", QUEUE],
    [READER, "send", QUEUE],
    [WRITER, "send", "target"],
    [READER, "receive", "target"],
    [{ roles: ["Azure Service Bus Data Owner"] }, "send", QUEUE],
    [{}, "receive", QUEUE],
  ]) {
    const queue = queueOf(broker, provider.credential(claims), {}, name);
    await assert.rejects(operations[operation](queue), { code: "UnauthorizedAccess" }, JSON.stringify(claims));
  }
  await assertUntouched(orders);
});

testWithProvider("a token that is not good is refused and nothing changes", async ({ broker, provider }) => {
  const orders = queueOf(broker, provider.credential(OPERATOR));
  await orders.send(message("untouched"));
  const { issuer } = provider;
  const key = provider.keys.RS256;
  for (const [bad, text, subCode] of [
    [credential(key, "https://evil.example", OPERATOR), "IssuerNotFound", 40109],
    [credential(new Key("first"), issuer, OPERATOR), "InvalidSignature", 40103],
    [credential(key, FILE_ISSUER, { roles: ["Manage"] }), "InvalidSignature", 40103],
    [credential(key, issuer, { ...OPERATOR, aud: "https://servicebus.azure.net" }), "InvalidAudience", 40104],
    [credential(key, issuer, { ...OPERATOR, exp: seconds() - 600 }), "ExpiredToken", 40106],
    [credential(key, issuer, { ...OPERATOR, nbf: seconds() + 600 }), "InvalidToken", 40100],
    [credential(key, issuer, OPERATOR, unsigned), "MalformedToken", 40105],
    [credential(key, issuer, OPERATOR, () => "an-opaque-token"), "MalformedToken", 40105],
  ]) {
    for (const operation of Object.values(operations)) {
      await assert.rejects(operation(queueOf(broker, bad)), { code: "UnauthorizedAccess", message: new RegExp(text) });
    }
    const administration = broker.administration(bad);
    const refusal = { statusCode: 401, message: new RegExp(`SubCode=${subCode}. ${text}`) };
    await assert.rejects(administration.deleteQueue(QUEUE), refusal);
    await assert.rejects(administration.createQueue("denied"), refusal);
  }
  await assertUntouched(orders);
  const administration = broker.administration(provider.credential(OPERATOR));
  assert.equal(await administration.queueExists("denied"), false);
});

testWithProvider("a program with a token of a provider administers", async ({ broker, provider }) => {
  for (const algorithm of ["RS256", "ES256"]) {
    const administration = broker.administration(provider.credential(OPERATOR, algorithm));
    await administration.createQueue("by-a-token", { maxDeliveryCount: 7 });
    assert.equal((await administration.getQueue("by-a-token")).maxDeliveryCount, 7);
    await administration.deleteQueue("by-a-token");
    assert.equal(await administration.queueExists("by-a-token"), false);
  }
  const writer = broker.administration(provider.credential(WRITER));
  await assert.rejects(writer.deleteQueue(QUEUE), { statusCode: 401 });
  const administration = broker.administration(provider.credential(OPERATOR));
  assert.equal(await administration.queueExists(QUEUE), true);
});

const firstKey = new Key("in-the-file");

testWithProvider(
  "keys are rotated without a restart",
  async ({ broker }) => {
    const secondKey = new Key("its-successor");
    // This issuer has the usual audience and the usual grants.
    const claims = { roles: ["Azure Service Bus Data Sender"], aud: "https://servicebus.azure.net" };
    const [old, next] = [firstKey, secondKey].map((key) => credential(key, FILE_ISSUER, claims));
    /** Why a send is refused; nothing if it is not. */
    const refusal = async (of) => {
      const client = broker.client(of);
      try {
        await operations.send(new Queue(client, QUEUE));
        return "";
      } catch (error) {
        return error.message;
      } finally {
        await client.close();
      }
    };
    assert.equal(await refusal(old), "");
    assert.match(await refusal(next), /InvalidSignature/);
    broker.writeKeys(firstKey, secondKey);
    await eventually(async () => (await refusal(next)) === "", "the new key");
    assert.equal(await refusal(old), "");
    broker.writeKeys(secondKey);
    // A link that stands when its key is withdrawn is detached, which is another refusal.
    await eventually(async () => (await refusal(old)).includes("InvalidSignature"), "the end of the old key");
    assert.equal(await refusal(next), "");
  },
  [firstKey],
);

testWithProvider("the development key is not valid beside an issuer", async ({ broker, provider }) => {
  const key = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;";
  const { connectionString } = broker.broker;
  assert.doesNotMatch(connectionString, /SharedAccessKey/);
  const text = connectionString.replace("UseDevelopmentEmulator", `${key}UseDevelopmentEmulator`);
  const client = connect({ retryOptions: { maxRetries: 0 } }, text);
  await assert.rejects(operations.send(new Queue(client, QUEUE)), { code: "UnauthorizedAccess" });
  await client.close();
  assert.ok(await queueOf(broker, provider.credential(OPERATOR)).isEmpty());
});
