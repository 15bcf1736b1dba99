// Programs without a connection string: DefaultAzureCredential finds the broker's development issuer by the variables
// that `railbus identity env` prints, and the clients take its tokens. Nothing in the program names Railbus.
// ClientSecretCredential gets them at its token endpoint.
"use strict";

const assert = require("node:assert/strict");
const { execFileSync } = require("node:child_process");
const { ClientSecretCredential, DefaultAzureCredential } = require("@azure/identity");
const { ServiceBusAdministrationClient, ServiceBusClient } = require("@azure/service-bus");
const WebSocket = require("ws");
const { Queue, message, receiveOne, test } = require("./support.js");

const namespace = `${process.env.RAILBUS_HOST}:${process.env.RAILBUS_PORT}`;

const transports = {
  AMQP: {},
  WebSocket: { webSocketOptions: { webSocket: WebSocket } },
};

function credential() {
  const listen = `127.0.0.1:${process.env.RAILBUS_PORT}`;
  const printed = execFileSync(process.env.RAILBUS_BIN, ["identity", "env", "--listen", listen], { encoding: "utf8" });
  const variables = [...printed.matchAll(/^export (\w+)=(\S+)$/gm)].map(([, name, value]) => [name, value]);
  assert.deepEqual(Object.keys(Object.fromEntries(variables)).sort(), ["IDENTITY_ENDPOINT", "IDENTITY_HEADER"]);
  Object.assign(process.env, Object.fromEntries(variables));
  return new DefaultAzureCredential();
}

/** Tokens for another service. */
function otherAudience() {
  const inner = credential();
  return { getToken: (_scopes, options) => inner.getToken("https://vault.azure.net/.default", options) };
}

/** The credential of a program whose authority is the broker. */
function clientSecret(secret) {
  const options = { authorityHost: `https://${namespace}`, disableInstanceDiscovery: true };
  return new ClientSecretCredential("any-tenant", "any-client", secret, options);
}

async function sendsAndReceives(client, name) {
  const queue = new Queue(client, name);
  await queue.send(message("without a key"));
  const receiver = queue.receiver();
  const received = await receiveOne(receiver);
  assert.equal(received.body, "without a key");
  await receiver.renewMessageLock(received);
  await receiver.completeMessage(received);
  await receiver.close();
  assert.ok(await queue.isEmpty());
  await client.close();
}

for (const [name, options] of Object.entries(transports)) {
  test(`a program without a connection string sends and receives over ${name}`, "plain", async (plain) => {
    await sendsAndReceives(new ServiceBusClient(namespace, credential(), options), plain.name);
  });
}

test("client credentials get a token", "plain", async (plain) => {
  await sendsAndReceives(new ServiceBusClient(namespace, clientSecret("SAS_KEY_VALUE")), plain.name);
});

test("a wrong secret gets no token", "plain", async () => {
  const refused = clientSecret("WRONG_KEY_VALUE").getToken("https://servicebus.azure.net/.default");
  await assert.rejects(refused, { name: "AuthenticationRequiredError", message: /invalid_client/ });
});

test("a program without a connection string administers", "plain", async () => {
  const client = new ServiceBusAdministrationClient(namespace, credential());
  const name = "js-identity";
  await client.createQueue(name);
  try {
    assert.equal((await client.getQueue(name)).name, name);
  } finally {
    await client.deleteQueue(name);
  }
});

test("a token for another service is refused", "plain", async (plain) => {
  const client = new ServiceBusClient(namespace, otherAudience(), { retryOptions: { maxRetries: 0 } });
  await assert.rejects(client.createSender(plain.name).sendMessages(message("")), /InvalidAudience/);
  await client.close();
  const administration = new ServiceBusAdministrationClient(namespace, otherAudience());
  await assert.rejects(administration.getQueue(plain.name), { statusCode: 401 });
  assert.ok(await plain.isEmpty());
});
