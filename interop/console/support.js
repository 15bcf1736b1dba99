// What every test file needs: a broker of its own, traffic of an SDK, and a page of the console that fails its
// test when a script throws, a file is refused, or a request leaves the broker.
"use strict";

const assert = require("node:assert/strict");
const { spawn } = require("node:child_process");
const { createHash } = require("node:crypto");
const { once } = require("node:events");
const { mkdtempSync, readFileSync, rmSync, writeFileSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const { createInterface } = require("node:readline");
const runner = require("node:test");
const { ServiceBusClient } = require("@azure/service-bus");
const axe = require("axe-core");
const { chromium } = require("playwright-core");

const READY = /^railbus ready listen=([^, ]+).* connection-string="([^"]+)"$/;
const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };

/** `railbus serve` with the entities of this folder. */
class Broker {
  /** `config` is the text of a configuration file; `options` are further ones of the command. */
  static async start({ config = "", options = ["--virtual-clock"], listen = "127.0.0.1:0" } = {}) {
    const broker = new Broker();
    broker.folder = mkdtempSync(join(tmpdir(), "railbus-console-"));
    const file = join(broker.folder, "railbus.toml");
    writeFileSync(file, config);
    const entities = join(__dirname, "entities.json");
    const all = ["serve", "--ephemeral", "--config", file, "--entities", entities, "--listen", listen, ...options];
    broker.process = spawn(process.env.RAILBUS_BIN, all, { stdio: ["ignore", "pipe", "ignore"] });
    const [line] = await once(createInterface(broker.process.stdout), "line");
    [, broker.address, broker.connectionString] = READY.exec(line);
    broker.url = `http://${broker.address.replace("127.0.0.1", "localhost")}/`;
    return broker;
  }

  async stop() {
    if (this.process.exitCode !== null) return;
    const ended = once(this.process, "exit");
    this.process.kill();
    await ended;
    rmSync(this.folder, { recursive: true });
  }
}

/** Sends `messages` to a queue or topic. */
async function send(client, name, ...messages) {
  const sender = client.createSender(name);
  await sender.sendMessages(messages);
  await sender.close();
}

/** Receives `count` messages. */
async function receive(receiver, count) {
  const received = [];
  while (received.length < count) {
    const some = await receiver.receiveMessages(count - received.length, { maxWaitTimeInMs: 10_000 });
    assert.notEqual(some.length, 0, `${count - received.length} more messages`);
    received.push(...some);
  }
  return received;
}

/** The answer of the broker's own interface, which must be no error. */
async function api(broker, method, path, body, headers = {}) {
  const request = { method, headers, body: body && JSON.stringify(body) };
  const answer = await fetch(`${broker.url}$railbus/${path}`, request);
  const text = await answer.text();
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
  return JSON.parse(text);
}

/** Receives `count` messages of a queue and dead-letters them. */
async function deadLetter(client, name, count, deadLetterReason, deadLetterErrorDescription = "made by a test") {
  const receiver = client.createReceiver(name);
  let left = count;
  while (left > 0) {
    const received = await receiver.receiveMessages(left, { maxWaitTimeInMs: 10_000 });
    assert.notEqual(received.length, 0, `${left} more messages in ${name}`);
    for (const one of received) {
      await receiver.deadLetterMessage(one, { deadLetterReason, deadLetterErrorDescription });
    }
    left -= received.length;
  }
  await receiver.close();
}

/**
 * Traffic of a queue until it is stopped: each message that is received and completed has another one sent, so the
 * queue never has more than two. What fails is noted.
 */
function traffic(client, errors, name = "orders") {
  let isStopped = false;
  let sent = 0;
  const sender = client.createSender(name);
  const receiver = client.createReceiver(name);
  const sendOne = async () => {
    const n = sent++;
    await sender.sendMessages({ body: { order: n }, subject: "order", applicationProperties: { n } });
  };
  const goesOn = new Promise((resolve) => {
    receiver.subscribe({
      processMessage: async () => {
        if (isStopped) return;
        await sendOne();
        if (sent > 2) resolve();
      },
      processError: async ({ error }) => {
        if (!isStopped) errors.push(error.message);
      },
    });
  });
  sendOne().catch((error) => errors.push(error.message));
  const stop = async () => {
    isStopped = true;
    await receiver.close();
    await sender.close();
  };
  return { goesOn, stop };
}

/** Notes as faults what axe finds on the page. */
async function checkAccess(page, what) {
  await page.evaluate(axe.source);
  // WCAG 2.2's size of targets is a rule that has to be asked for.
  const options = { resultTypes: ["violations"], rules: { "target-size": { enabled: true } } };
  const result = await page.evaluate((options) => globalThis.axe.run(document, options), options);
  const found = (one) => `${what}: ${one.id}: ${one.nodes.map((node) => node.html.slice(0, 300)).join(" ")}`;
  page.faults.push(...result.violations.map(found));
}

/** What a reader works: of a page, or of a dialog. */
const CONTROLS = ["a[href]", "button", "input", "select", "textarea"];

/** Notes as faults the controls of a part of the page that Tab does not reach. What is drawn anew counts as new. */
async function checkTab(page, what, part = "main") {
  const selector = CONTROLS.map((control) => `${part} ${control}`).join();
  const look = () =>
    page.evaluate((selector) => {
      document.activeElement.dataset.reached = "yes";
      const all = [...document.querySelectorAll(selector)];
      const shown = all.filter((one) => !one.disabled && one.getClientRects().length > 0);
      const left = shown.filter((one) => !one.dataset.reached).map((one) => one.outerHTML.slice(0, 200));
      return { count: shown.length, left };
    }, selector);
  if (part === "main") await page.locator("#content").focus();
  let { count, left } = await look();
  assert.notEqual(count, 0, `${what}: no control`);
  for (let turn = 0; turn < 2 * count + 40 && left.length > 0; turn += 1) {
    await page.keyboard.press("Tab");
    ({ left } = await look());
  }
  if (left.length > 0) page.faults.push(`${what}: Tab does not reach ${left.join(" ")}`);
}

/** Pictures that the documentation has, by the name of their screenshot. */
const DOCUMENTED = {
  "overview-light": "overview",
  "topology-light": "topology",
  "dead-letters-light": "dead-letters",
  "message-light": "message",
};

/** The time that a page has to be as it was when its picture was taken. */
const SETTLED_MS = 10_000;
const FIGURE = /(\d+([.,:/]\d+)*|–)( (ms|s|min|h|d|B|[KMGT]iB)\b)?/g;

/** The parts of the page by their names, as a screen reader has them: figures are 0, and of equal rows there is one. */
async function structure(page) {
  // A figure alone is quoted, and one with a unit or without a value is not.
  const seen = (await page.locator("body").ariaSnapshot()).replace(FIGURE, "0").replaceAll('"0"', "0");
  const rows = seen.split(/\n(?= *- '?row )/);
  return rows.filter((row, at) => rows.indexOf(row) === at).join("\n");
}

/** The first line of one text that another does not have in its place. */
function difference(text, other) {
  const [lines, others] = [text.split("\n"), other.split("\n")];
  const at = lines.findIndex((line, at) => line !== others[at]);
  return at < 0 ? `line ${lines.length + 1} is missing` : `line ${at + 1} is "${lines[at]}", not "${others[at]}"`;
}

/**
 * A picture of the documentation is stale, which is a fault, if the page or the style sheet is not as it was then.
 * With RAILBUS_DOCS_IMAGES=1 the picture is taken anew, and what it shows is kept beside it.
 */
async function compareDocumented(page, name) {
  const place = join(__dirname, "../../docs/images", `console-${name}`);
  const isNew = process.env.RAILBUS_DOCS_IMAGES === "1";
  const then = isNew ? "" : readFileSync(`${place}.yaml`, "utf8");
  const style = await page.evaluate(async () => {
    const sheet = document.querySelector("link[rel=stylesheet]");
    return (await fetch(sheet.href)).text();
  });
  const sum = createHash("sha256").update(style).digest("hex");
  const until = Date.now() + SETTLED_MS;
  let now;
  do now = `# style sheet: ${sum}\n${await structure(page)}\n`;
  while (now !== then && Date.now() < until);
  if (isNew) {
    await page.screenshot({ path: `${place}.png` });
    writeFileSync(`${place}.yaml`, now);
  } else if (now !== then) {
    page.faults.push(
      `docs/images/console-${name}.png is stale: ${difference(now, then)} in console-${name}.yaml. ` +
        "RAILBUS_DOCS_IMAGES=1 interop/console/run takes the pictures anew.",
    );
  }
}

/** Keeps a picture of the page. */
async function screenshot(page, name) {
  await page.screenshot({ path: join(process.env.RAILBUS_SCREENSHOTS, `${name}.png`) });
  const documented = DOCUMENTED[name];
  if (documented) await compareDocumented(page, documented);
}

/** A page that collects what must not happen. */
async function openPage(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: DESKTOP, ...options });
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(`a script failed: ${error.message}`));
  page.on("dialog", (dialog) => {
    page.faults.push(`a script of a message ran: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    if (message.text().includes("Content Security Policy")) page.faults.push(message.text());
  });
  page.on("request", (request) => {
    const address = request.url();
    if (!address.startsWith(url) && !/^(data|blob):/.test(address)) page.faults.push(`a request left: ${address}`);
  });
  page.setDefaultTimeout(30_000);
  return page;
}

/** A test that gets a broker, a client of it, what opens a page, and what begins traffic. */
function test(name, body, settings = {}) {
  runner.test(name, async () => {
    const broker = await Broker.start(settings);
    const client = settings.config ? null : new ServiceBusClient(broker.connectionString);
    const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
    const pages = [];
    const [running, errors] = [[], []];
    const begin = (name) => running.push(traffic(client, errors, name));
    const open = async (options, path = "") => {
      const page = await openPage(browser, broker.url, options);
      pages.push(page);
      await page.goto(broker.url + path);
      return page;
    };
    try {
      await body({ begin, broker, client, open });
      for (const { goesOn } of running) await goesOn;
      const faults = pages.flatMap((page) => page.faults);
      assert.deepEqual([...faults, ...errors], []);
    } finally {
      for (const { stop } of running) await stop();
      await browser.close();
      await client?.close();
      await broker.stop();
    }
  });
}

/** Signs in by a connection string, or by a key and the name of its rule. */
async function signIn(page, text, name = "") {
  await page.getByLabel("Connection string, key or token").fill(text);
  await page.getByLabel("Name of the rule").fill(name);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** The answer to a request of a script of the page, which knows all that the page knows. */
function ask(page, method, path) {
  return page.evaluate(
    async ([method, path]) => {
      const session = await (await fetch("/$railbus/session", { method: "POST" })).json();
      const headers = { "x-railbus-csrf": session.csrf };
      return (await fetch(`/$railbus/${path}`, { method, headers, body: method === "GET" ? undefined : "{}" })).status;
    },
    [method, path],
  );
}

/** Agrees to what a dialog asks. One that lies over another is told by its title. */
async function agree(page, name, title) {
  await page.getByRole("dialog", { name: title }).getByRole("button", { name, exact: true }).click();
}

/** Goes to a place of the console. */
async function visit(page, broker, place) {
  await page.goto(`${broker.url}#/${place}`);
}

/** The place of an entity. */
function entity(path, tab = "", query = "") {
  return `entity/${encodeURIComponent(path)}${tab && `/${tab}`}${query && `?${query}`}`;
}

module.exports = {
  Broker,
  DESKTOP,
  PHONE,
  agree,
  api,
  ask,
  checkAccess,
  checkTab,
  deadLetter,
  entity,
  receive,
  screenshot,
  send,
  signIn,
  test,
  visit,
};
