// The rights of a key are those of the reader: by the page, and by the interface with the page's session.
"use strict";

const assert = require("node:assert/strict");
const { createHmac, generateKeyPairSync, sign } = require("node:crypto");
const { mkdtempSync, rmSync, writeFileSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const runner = require("node:test");
const { Broker, api, ask, checkAccess, entity, signIn, test, visit } = require("./support.js");

const CONFIG = `
[[auth.rules]]
name = "owner"
primary-key = "key-of-the-owner"
rights = ["send", "listen", "manage"]

[[auth.rules]]
name = "listener"
primary-key = "key-of-the-listener"
rights = ["listen"]

[[auth.rules]]
name = "sender"
primary-key = "key-of-the-sender"
rights = ["send"]
`;

test("without a key nothing is shown, and a wrong one is refused", async ({ open }) => {
  const page = await open();
  await page.getByRole("heading", { name: "Railbus" }).waitFor();
  await checkAccess(page, "sign-in");
  await signIn(page, "no-key", "owner");
  await page.getByRole("alert").getByText("The rule's name or its key is wrong.").waitFor();
  assert.equal(await page.evaluate(() => fetch("/$railbus/counts").then((answer) => answer.status)), 401);
}, { config: CONFIG });

test("an owner signs in by connection string, stays so over a reload, and signs out", async ({ broker, open }) => {
  const page = await open();
  await signIn(page, `Endpoint=sb://localhost;SharedAccessKeyName=owner;SharedAccessKey=key-of-the-owner`);
  await page.getByText("Longest backlogs").waitFor();
  await page.reload();
  await page.getByText("Longest backlogs").waitFor();
  const [cookie] = await page.context().cookies(`${broker.url}$railbus/`);
  assert.ok(cookie.httpOnly && cookie.sameSite === "Strict");
  assert.equal(await page.evaluate(() => document.cookie), "");
  assert.equal(await ask(page, "DELETE", "entities/audit"), 200);
  const without = () => fetch("/$railbus/entities/invoices", { method: "DELETE" }).then((answer) => answer.status);
  assert.equal(await page.evaluate(without), 403);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Connection string, key or token").waitFor();
  assert.equal(await page.evaluate(() => fetch("/$railbus/counts").then((answer) => answer.status)), 401);
}, { config: CONFIG });

/** A shared access signature for the whole namespace. */
function signature(name, key) {
  const resource = encodeURIComponent("sb://localhost/");
  const expiry = Math.floor(Date.now() / 1000) + 3600;
  const digest = createHmac("sha256", key).update(`${resource}\n${expiry}`).digest("base64");
  return `SharedAccessSignature sr=${resource}&sig=${encodeURIComponent(digest)}&se=${expiry}&skn=${name}`;
}

test("a shared access signature signs in, also within a connection string", async ({ open }) => {
  const page = await open();
  const signed = signature("listener", "key-of-the-listener");
  for (const text of [signed, `Endpoint=sb://localhost;SharedAccessSignature=${signed}`]) {
    await signIn(page, text);
    await page.getByText("Longest backlogs").waitFor();
    assert.equal(await page.getByRole("link", { name: "Settings", exact: true }).count(), 0);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Connection string, key or token").waitFor();
  }
}, { config: CONFIG });

test("a key that listens opens a message, and is led to no page that it has not", async ({ broker, open }) => {
  const headers = { authorization: `Basic ${Buffer.from("owner:key-of-the-owner").toString("base64")}` };
  await api(broker, "POST", "entities/orders/messages", { body: "hello" }, headers);
  const page = await open();
  await signIn(page, "key-of-the-listener", "listener");
  await page.getByText("Longest backlogs").waitFor();
  await visit(page, broker, entity("orders", "messages"));
  await page.getByRole("button", { name: "1", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("hello").waitFor();
  await dialog.getByRole("link", { name: "Why" }).waitFor();
  for (const name of ["Test a rule", "Send again", "Edit and send", "Complete", "Dead-letter"]) {
    assert.equal(await dialog.getByText(name, { exact: true }).count(), 0, name);
  }
}, { config: CONFIG });

test("a stream of events ends when its session does", async ({ open }) => {
  const page = await open();
  await signIn(page, "key-of-the-listener", "listener");
  await page.getByText("Longest backlogs").waitFor();
  const last = await page.evaluate(async () => {
    const { csrf } = await fetch("/$railbus/session", { method: "POST" }).then((answer) => answer.json());
    const events = (await fetch("/$railbus/events")).body.getReader();
    await events.read();
    await fetch("/$railbus/session", { method: "DELETE", headers: { "x-railbus-csrf": csrf } });
    let read;
    do read = await events.read(); while (!read.done);
    return (await fetch("/$railbus/events")).status;
  });
  assert.equal(last, 401);
}, { config: CONFIG });

test("a key that listens sees and changes nothing", async ({ broker, open }) => {
  const page = await open();
  await signIn(page, "key-of-the-listener", "listener");
  await page.getByText("Longest backlogs").waitFor();
  for (const name of ["Send", "Rules", "Settings", "Clock", "Faults", "Snapshots"]) {
    assert.equal(await page.getByRole("link", { name, exact: true }).count(), 0, name);
  }
  await visit(page, broker, entity("orders", "messages"));
  await page.getByText("There are no active messages.").waitFor();
  assert.equal(await page.getByRole("button", { name: /Delete/ }).count(), 0);
  assert.equal(await ask(page, "GET", "entities/orders/messages"), 200);
  assert.equal(await ask(page, "GET", "entities/orders/receivers"), 200);
  assert.equal(await page.getByRole("link", { name: "Connections" }).count(), 0);
  assert.equal(await page.getByRole("button", { name: /^Namespace/ }).count(), 0);
  assert.equal(await ask(page, "GET", "entities/orders/explain"), 200);
  assert.equal(await ask(page, "GET", "namespaces/default/history"), 200);
  assert.equal(await ask(page, "GET", "namespaces/default/counts"), 200);
  for (const [method, path] of [
    ["POST", "entities/orders/messages"],
    ["POST", "entities/orders/purge"],
    ["POST", "entities/orders/redrive"],
    ["PUT", "entities/new"],
    ["PATCH", "entities/orders"],
    ["DELETE", "entities/orders"],
    ["POST", "apply"],
    ["POST", "clock"],
    ["POST", "backups"],
    ["GET", "connections"],
    ["DELETE", "connections/1"],
    ["GET", "namespaces"],
    ["PUT", "namespaces/mine"],
    ["POST", "namespaces/default/reset"],
    ["GET", "namespaces/default/faults"],
    ["POST", "namespaces/default/faults"],
    ["PUT", "namespaces/default/faults"],
    ["DELETE", "namespaces/default/faults"],
    ["GET", "namespaces/default/snapshots"],
    ["POST", "namespaces/default/snapshots"],
    ["DELETE", "namespaces/default/snapshots/a"],
    ["POST", "namespaces/default/restore"],
    ["POST", "namespaces/default/fork"],
    ["POST", "namespaces/default/clock"],
    ["PUT", "namespaces/default/entities/new"],
    ["DELETE", "namespaces/default/entities/orders"],
    ["POST", "namespaces/default/apply"],
    ["GET", "namespaces/other/counts"],
    ["GET", "namespaces/other/history"],
    ["PUT", "namespaces/other/entities/new"],
  ]) {
    assert.equal(await ask(page, method, path), 401, `${method} ${path}`);
  }
}, { config: CONFIG });

test("a key that sends does that alone", async ({ open }) => {
  const page = await open();
  await signIn(page, "key-of-the-sender", "sender");
  await page.getByLabel("Queue or topic").fill("orders");
  await page.getByLabel("Body").fill("hello");
  await page.locator("main").getByRole("button", { name: "Send" }).click();
  await page.getByText("The message is stored as number 1.").waitFor();
  assert.equal(await ask(page, "GET", "entities/orders/messages"), 401);
  assert.equal(await ask(page, "GET", "overview"), 401);
}, { config: CONFIG });

test("a session of another broker is none here", async ({ broker, open }) => {
  const page = await open();
  const name = `railbus-session-${new URL(broker.url).port}`;
  const cookie = { name, value: "0".repeat(64), domain: "localhost", path: "/$railbus/" };
  await page.context().addCookies([cookie]);
  await page.reload();
  await page.getByLabel("Connection string, key or token").waitFor();
  assert.equal(await page.evaluate(() => fetch("/$railbus/counts").then((answer) => answer.status)), 401);
}, { config: CONFIG });

test("sessions of two brokers on a host do not end each other", async ({ open }) => {
  const other = await Broker.start({ config: CONFIG });
  try {
    const page = await open();
    await signIn(page, "key-of-the-owner", "owner");
    await page.getByText("Longest backlogs").waitFor();
    const second = await page.context().newPage();
    await second.goto(other.url);
    await signIn(second, "key-of-the-listener", "listener");
    await second.getByText("Longest backlogs").waitFor();
    for (const [one, links] of [[second, 0], [page, 1]]) {
      await one.reload();
      await one.getByText("Longest backlogs").waitFor();
      assert.equal(await one.getByRole("link", { name: "Settings", exact: true }).count(), links);
    }
  } finally {
    await other.stop();
  }
}, { config: CONFIG });

const ISSUER = "https://issuer.example";
const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
const folder = mkdtempSync(join(tmpdir(), "railbus-console-issuer-"));
runner.after(() => rmSync(folder, { recursive: true }));
const keySet = join(folder, "keys.json");
writeFileSync(keySet, JSON.stringify({ keys: [{ ...keys.publicKey.export({ format: "jwk" }), kid: "one", use: "sig" }] }));
const TRUSTING = `[[auth.issuers]]\nissuer = "${ISSUER}"\njwks-file = "${keySet}"\n`;

/** A token of the issuer, for `seconds` from now on. */
function token(role, seconds = 3600) {
  const encoded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const exp = Math.floor(Date.now() / 1000) + seconds;
  const claims = { iss: ISSUER, aud: "https://servicebus.azure.net", roles: [role], exp };
  const text = `${encoded({ alg: "ES256", typ: "JWT", kid: "one" })}.${encoded(claims)}`;
  const signature = sign("sha256", Buffer.from(text), { key: keys.privateKey, dsaEncoding: "ieee-p1363" });
  return `${text}.${signature.toString("base64url")}`;
}

test("a token of an issuer signs in with the rights of its roles", async ({ broker, open }) => {
  const page = await open();
  for (const bad of [token("Listen", -3600), `${token("Listen").slice(0, -8)}AAAAAAAA`, "no.to.ken"]) {
    await signIn(page, bad);
    await page.getByRole("alert").waitFor();
    assert.equal(await page.evaluate(() => fetch("/$railbus/counts").then((answer) => answer.status)), 401);
    await page.reload();
  }
  const listener = token("Listen");
  await signIn(page, listener);
  await page.getByText("Longest backlogs").waitFor();
  await page.getByText("Free on the disk").waitFor();
  await page.reload();
  await page.getByText("Longest backlogs").waitFor();
  assert.equal(await page.getByRole("link", { name: "Settings", exact: true }).count(), 0);
  assert.equal(await ask(page, "GET", "entities/orders/messages"), 200);
  assert.equal(await ask(page, "DELETE", "entities/orders"), 401);
  const [cookie] = await page.context().cookies(`${broker.url}$railbus/`);
  assert.ok(cookie.httpOnly && cookie.sameSite === "Strict");
  // The browser does not keep the token itself.
  const kept = await page.evaluate(() => JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }]));
  assert.ok(![kept, cookie.value].some((text) => text.includes(listener.split(".")[2])));
  await page.getByRole("button", { name: "Sign out" }).click();
  await signIn(page, token("Manage"));
  await page.getByRole("link", { name: "Settings", exact: true }).waitFor();
  assert.equal(await ask(page, "DELETE", "entities/audit"), 200);
}, { config: TRUSTING });
