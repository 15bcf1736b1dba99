// TLS, with AMQP or WebSocket inside. Node trusts the broker's certificate authority by NODE_EXTRA_CA_CERTS,
// which `run` sets. Without `UseDevelopmentEmulator=true` this SDK speaks TLS on the port of the connection string.
"use strict";

const assert = require("node:assert/strict");
const { execFileSync } = require("node:child_process");
const { randomBytes } = require("node:crypto");
const WebSocket = require("ws");
const { Queue, connect, connectionString, message, receiveOne, test } = require("./support.js");

const transports = {
  TLS: {},
  "WebSocket within TLS": { webSocketOptions: { webSocket: WebSocket } },
};

function secured(options = {}) {
  const text = connectionString.replace("UseDevelopmentEmulator=true;", "");
  assert.notEqual(text, connectionString);
  return connect(options, text);
}

async function exchange(queue, body) {
  await queue.send(message(body));
  const receiver = queue.receiver();
  const received = await receiveOne(receiver);
  assert.deepEqual(received.body, body);
  await receiver.renewMessageLock(received);
  await receiver.completeMessage(received);
  await receiver.close();
  assert.ok(await queue.isEmpty());
}

for (const [name, options] of Object.entries(transports)) {
  test(`a message goes over ${name}`, "plain", async (queue) => {
    const client = secured(options);
    await exchange(new Queue(client, queue.name), name);
    await client.close();
  });

  test(`a large message goes over ${name}`, "large", async (queue) => {
    const client = secured(options);
    await exchange(new Queue(client, queue.name), randomBytes(900 * 1024));
    await client.close();
  });
}

test("a client that does not trust the authority does not connect", "plain", async (queue) => {
  // What Node trusts is settled when it starts.
  const program = `
    const { ServiceBusClient } = require("@azure/service-bus");
    const client = new ServiceBusClient(process.argv[1], { retryOptions: { maxRetries: 0 } });
    client.createSender(process.argv[2]).sendMessages({ body: "" }).then(
      () => console.log("sent"),
      (error) => console.log(error.code + " " + error.message),
    ).finally(() => process.exit());`;
  const text = connectionString.replace("UseDevelopmentEmulator=true;", "");
  const environment = { ...process.env, NODE_EXTRA_CA_CERTS: "" };
  const said = execFileSync(process.execPath, ["-e", program, text, queue.name], { env: environment });
  assert.match(said.toString(), /certificate/);
  assert.ok(await queue.isEmpty());
});
