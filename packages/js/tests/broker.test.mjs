// What a broker of this package promises. Run with the installed package, in the folder of the example.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { start } from "railbus";

const ORDERS = { queues: [{ name: "orders" }] };

function folder(context) {
  const name = mkdtempSync(path.join(tmpdir(), "kit-"));
  context.after(() => rmSync(name, { recursive: true }));
  return name;
}

/** A node that starts a broker on the folder and goes on with `then`, and what it prints. */
function parent(folder, then) {
  const script = `require("railbus").start().then((broker) => { console.log(broker.pid); ${then} })`;
  const child = spawn(process.execPath, ["-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, TMPDIR: folder },
  });
  return { child, lines: createInterface(child.stdout) };
}

/** Resolves when the process has ended, without asking again and again. */
function end(pid) {
  return once(spawn("tail", ["--pid", String(pid), "-f", "/dev/null"]), "exit");
}

test("nothing is left of a process that is killed", async (context) => {
  const temporary = folder(context);
  const { child, lines } = parent(temporary, "setInterval(() => {}, 1000)");
  const [pid] = await once(lines, "line");
  child.kill("SIGKILL");
  await end(pid);
  assert.deepEqual(readdirSync(temporary), []);
});

test("a broker that is not stopped does not keep its process alive", async (context) => {
  const temporary = folder(context);
  const { child, lines } = parent(temporary, "");
  const exited = once(child, "exit");
  const [pid] = await once(lines, "line");
  assert.deepEqual(await exited, [0, null]);
  await end(pid);
  assert.deepEqual(readdirSync(temporary), []);
});

test("a broker that is stopped ends with 0", async () => {
  const broker = await start({ entities: ORDERS });
  assert.match(broker.connectionString, /^Endpoint=sb:\/\/localhost:/);
  assert.equal(await broker.stop(), 0);
});

test("a taken port is named", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address();
  await assert.rejects(start({ port }), new RegExp(`exit code 2 before it was ready:\\n[^]*127.0.0.1:${port}`));
  taken.close();
});

test("a program that is missing is a clear error", async (context) => {
  const alone = path.join(folder(context), "railbus");
  cpSync("node_modules/railbus", alone, { recursive: true });
  const run = (environment) => {
    const script = `require(${JSON.stringify(alone)}).start().catch((error) => console.log(error.message))`;
    return spawnSync(process.execPath, ["-e", script], { encoding: "utf8", env: environment }).stdout;
  };
  assert.match(run({ PATH: "" }), /^the program railbus is missing: install @railbus\//);
  assert.match(run({ RAILBUS_BIN: "/nowhere/railbus" }), /^\/nowhere\/railbus cannot be started: ENOENT/);
});

test("a refused duration is an error", async () => {
  const broker = await start();
  await assert.rejects(broker.advance("tomorrow"), /tomorrow/);
  await broker.stop();
});

const FAILURE = '.advance("tomorrow")); // The broker refuses it, and logs that.';
const FAILING = {
  "failing.node.mjs": `import { test } from "node:test";
import { useBroker } from "railbus/node-test";
const railbus = useBroker();
test("fails", () => railbus.broker${FAILURE}`,
  "failing.vitest.mjs": `import { test } from "vitest";
import { useBroker } from "railbus/vitest";
const railbus = useBroker();
test("fails", () => railbus.broker${FAILURE}`,
  "failing.jest.js": `test("fails", () => railbus${FAILURE}`,
};
const RUNNERS = {
  "failing.node.mjs": ["--test"],
  "failing.vitest.mjs": ["node_modules/vitest/vitest.mjs", "run"],
  "failing.jest.js": ["node_modules/jest/bin/jest.js"],
};

for (const [file, text] of Object.entries(FAILING)) {
  test(`a failed test shows the log: ${file}`, (context) => {
    writeFileSync(file, text);
    context.after(() => rmSync(file));
    const { NODE_TEST_CONTEXT, ...environment } = process.env;
    const run = spawnSync(process.execPath, [...RUNNERS[file], file], { encoding: "utf8", env: environment });
    assert.notEqual(run.status, 0);
    assert.match(run.stdout + run.stderr, /log of railbus:[^]*WARN an HTTP request is refused: `tomorrow`/);
  });
}

test("a start takes milliseconds", async (context) => {
  const took = [];
  for (let round = 0; round < 5; round++) {
    const began = performance.now();
    const broker = await start({ entities: ORDERS });
    took.push(performance.now() - began);
    await broker.stop();
  }
  took.sort((left, right) => left - right);
  context.diagnostic(`ready after ${took[2].toFixed(1)} ms (median of ${took.length})`);
});
