// Faults on purpose: what this SDK shows its user of each effect, as docs/faults.md says.
//
// Each effect happens once, and to two operations in a row where the second one waits for the first: then it
// is the second that counts. `tries` is how often the broker has seen it, so 2 is one retry; `messages` is how
// many are in the queue then. With RAILBUS_UPDATE_FAULTS the table is written anew.
"use strict";

const assert = require("node:assert/strict");
const { readFileSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");
const { after, before, test } = require("node:test");
const { connect, message, receiveOne } = require("./support.js");
const { Broker } = require("./virtual-clock.js");

const DOCUMENT = join(__dirname, "..", "..", "docs", "faults.md");
const { version } = require("@azure/service-bus/package.json");
const TITLE = `### JavaScript: @azure/service-bus ${version}`;
const HEAD = [
  "| Effect | `send` | tries | messages | `complete` | tries | messages |",
  "|---|---|---|---|---|---|---|",
];
const REFUSALS = [
  "server-busy",
  "timeout",
  "quota-exceeded",
  "entity-disabled",
  "not-found",
  "unauthorized",
  "internal-error",
];
const EFFECTS = [
  ...REFUSALS.map((error) => ({ refuse: error })),
  { detach: "detach-forced" },
  { end: "internal-error" },
  { close: "connection-forced" },
  "expire-token",
  { disconnect: "before" },
  { disconnect: "after" },
  { "delay-ms": 50 },
  { "throttle-per-second": 20 },
  { "withhold-credit-ms": 50 },
  "lose-lock",
  "deliver-again",
];
const OF_LOCKS = ["lose-lock", "deliver-again"];
const isOfSends = (effect) => "withhold-credit-ms" in Object(effect);
/** Two where the first operation takes its turn or the credit, and the second one waits. */
const countOf = (effect) => ("throttle-per-second" in Object(effect) || isOfSends(effect) ? 2 : 1);

let broker;

before(async () => {
  broker = await Broker.start();
});

after(() => broker.stop());

async function ask(method, path, body) {
  const answer = await fetch(`http://${broker.address}/$railbus/namespaces/default/${path}`, {
    method,
    body: body && JSON.stringify(body),
  });
  assert.ok(answer.ok, await answer.clone().text());
  return answer.json();
}

function inject(effect, operation) {
  const match = { entity: "orders", operations: [operation], times: countOf(effect) };
  return ask("PUT", "faults", { faults: [{ name: "once", match, effect }] });
}

/** The error that a user of the SDK sees. */
async function outcome(operation) {
  try {
    await operation();
  } catch (error) {
    // Of a settlement that was tried again, each try has an error.
    const errors = error.errors ?? [error];
    return errors.map((one) => `\`${one.name}\` \`${one.code}\``).join(", ");
  }
  return "nothing";
}

/** What is seen of the operation of the last of these messages. */
async function result(operation, messages) {
  const last = messages.pop();
  for (const one of messages) await operation(one);
  const shown = await outcome(() => operation(last));
  const { faults } = await ask("GET", "faults");
  await ask("DELETE", "faults");
  const left = await using((client) => client.createReceiver("orders").peekMessages(100));
  return [shown, faults[0].matched - messages.length, left.length];
}

/** Its retries are the SDK's own, with less time for each try and between them. */
async function using(body) {
  const retryOptions = { timeoutInMs: 5000, retryDelayInMs: 50 };
  const client = connect({ retryOptions }, broker.connectionString);
  try {
    return await body(client);
  } finally {
    await client.close();
  }
}

function ofSend(effect) {
  return using(async (client) => {
    const messages = Array.from({ length: countOf(effect) }, () => message());
    const sender = client.createSender("orders");
    await inject(effect, "send");
    const [shown, tries, left] = await result((one) => sender.sendMessages(one), messages);
    return [shown, tries, left - countOf(effect) + 1];
  });
}

function ofComplete(effect) {
  return using(async (client) => {
    const sender = client.createSender("orders");
    const receiver = client.createReceiver("orders");
    const received = [];
    for (let count = countOf(effect); count > 0; count -= 1) {
      await sender.sendMessages(message());
      received.push(await receiveOne(receiver));
    }
    await inject(effect, "complete");
    return result((one) => receiver.completeMessage(one), received);
  });
}

async function row(effect) {
  const sent = OF_LOCKS.includes(effect) ? ["", "", ""] : await ofSend(effect);
  await ask("POST", "reset");
  const completed = isOfSends(effect) ? ["", "", ""] : await ofComplete(effect);
  await ask("POST", "reset");
  const shown = typeof effect === "string" ? effect : Object.entries(effect)[0].join(": ");
  return `| ${[`\`${shown}\``, ...sent, ...completed].join(" | ")} |`;
}

test("each effect is shown as the document says", async () => {
  const found = [...HEAD];
  for (const effect of EFFECTS) {
    found.push(await row(effect));
  }
  const text = readFileSync(DOCUMENT, "utf8");
  const [head, tail] = text.split(`${TITLE}\n`);
  const next = tail.indexOf("\n### ");
  const rest = next < 0 ? "" : tail.slice(next);
  if (process.env.RAILBUS_UPDATE_FAULTS) {
    writeFileSync(DOCUMENT, `${head}${TITLE}\n\n${found.join("\n")}\n${rest}`);
  } else {
    assert.deepEqual(tail.slice(1).split("\n").slice(0, found.length), found);
  }
});
