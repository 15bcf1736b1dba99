// Measures the console with 10,000 entities and a queue of a million messages: the time of each answer that a page
// asks for, and the memory of its tab. It fails if an answer takes 200 ms, or a tab 150 MB.
"use strict";

const assert = require("node:assert/strict");
const { execFileSync } = require("node:child_process");
const { readFileSync } = require("node:fs");
const { chromium } = require("playwright-core");
const { Broker, DESKTOP, entity, visit } = require("./support.js");

/** With the queue that is filled and those of the other tests, 10,000: more a namespace cannot have. */
const QUEUES = 9_992;
const MESSAGES = 1_000_000;
const ANSWER_MS = 200;
const TAB_BYTES = 150e6;
/** Requests of live pages are counted for so long. */
const WATCH_MS = 8_000;

const PLACES = [
  ["overview", ""],
  ["entities", "entities?sort=active&order=descending"],
  ["queue", entity("full")],
  ["messages", entity("full", "messages")],
  ["messages, at the end", entity("full", "messages", `from=${MESSAGES - 100}`)],
  ["dead letters", entity("full", "dead-letters")],
  ["settings of a queue", entity("full", "settings")],
  ["topology", "topology"],
  ["connections", "connections"],
  ["send", "send?path=full"],
];

/** Makes the queues, and fills one. */
async function fill(broker) {
  const queues = Array.from({ length: QUEUES }, (_, n) => ({ name: `queue-${n}` }));
  for (let at = 0; at < queues.length; at += 1_000) {
    const body = JSON.stringify({ queues: queues.slice(at, at + 1_000) });
    const answer = await fetch(`${broker.url}$railbus/apply`, { method: "POST", body });
    assert.equal(answer.status, 200);
  }
  const body = JSON.stringify({ "max-size-in-megabytes": 81920 });
  const made = await fetch(`${broker.url}$railbus/entities/full`, { method: "PUT", body });
  assert.equal(made.status, 201, await made.text());
  const { RAILBUS_BIN } = process.env;
  const connect = ["--connection-string", broker.connectionString];
  execFileSync(RAILBUS_BIN, ["send", "full", "a message", "--count", String(MESSAGES), ...connect], { stdio: "ignore" });
}

/** Bytes of the process that shows the page, without what it shares. */
async function tabBytes(browser) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const tabs = processInfo.filter((one) => one.type === "renderer");
  const sizes = tabs.map(({ id }) => {
    const rollup = readFileSync(`/proc/${id}/smaps_rollup`, "utf8");
    return 1024 * Number(/^Pss:\s+(\d+) kB/m.exec(rollup)[1]);
  });
  return Math.max(...sizes);
}

async function measure(broker, [name, place]) {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  const page = await (await browser.newContext({ viewport: DESKTOP })).newPage();
  const answers = [];
  page.on("requestfinished", (request) => {
    const path = request.url().slice(broker.url.length);
    if (!path.startsWith("$railbus/") || path.startsWith("$railbus/events")) return;
    const { requestStart, responseEnd } = request.timing();
    answers.push({ path, ms: responseEnd - requestStart });
  });
  await page.goto(broker.url);
  await visit(page, broker, place);
  await new Promise((done) => setTimeout(done, WATCH_MS));
  const bytes = await tabBytes(browser);
  await browser.close();
  const slowest = answers.reduce((most, one) => (one.ms > most.ms ? one : most));
  const median = answers.map((one) => one.ms).sort((a, b) => a - b)[answers.length >> 1];
  const line = `${name}: ${answers.length} answers, median ${median.toFixed(0)} ms, slowest ${slowest.ms.toFixed(0)} ms (${slowest.path}), tab ${(bytes / 1e6).toFixed(0)} MB`;
  console.log(line);
  return slowest.ms < ANSWER_MS && bytes < TAB_BYTES;
}

async function run() {
  const broker = await Broker.start({ options: [] });
  try {
    await fill(broker);
    const slow = [];
    for (const place of PLACES) {
      if (!(await measure(broker, place))) slow.push(place[0]);
    }
    assert.deepEqual(slow, [], `pages above ${ANSWER_MS} ms or ${TAB_BYTES / 1e6} MB`);
  } finally {
    await broker.stop();
  }
}

run().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
