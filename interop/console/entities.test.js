// A key of one entity: the reader sees that entity alone, and works on it by the rights of the key.
"use strict";

const assert = require("node:assert/strict");
const { ServiceBusClient } = require("@azure/service-bus");
const { agree, ask, checkAccess, entity, send, signIn, test, visit } = require("./support.js");

const CONFIG = `
[[auth.rules]]
name = "owner"
primary-key = "key-of-the-owner"
rights = ["send", "listen", "manage"]

[[auth.rules]]
name = "reader"
primary-key = "key-of-the-reader"
rights = ["listen"]
entity = "orders"

[[auth.rules]]
name = "writer"
primary-key = "key-of-the-writer"
rights = ["send"]
entity = "orders"

[[auth.rules]]
name = "keeper"
primary-key = "key-of-the-keeper"
rights = ["send", "listen", "manage"]
entity = "events"
`;

/** The connection string of a key of an entity. */
function connectionString(broker, name, path) {
  const endpoint = broker.url.replace("http:", "sb:");
  const development = "UseDevelopmentEmulator=true";
  return `Endpoint=${endpoint};SharedAccessKeyName=${name};SharedAccessKey=key-of-the-${name};EntityPath=${path};${development}`;
}

/** Sends to a queue and to one that the keys of these tests do not show. */
async function fill(broker) {
  const client = new ServiceBusClient(connectionString(broker, "owner", "").replace("EntityPath=;", ""));
  await send(client, "orders", { body: "first", messageId: "a" }, { body: "second" });
  await send(client, "invoices", { body: "of others" });
  await send(client, "events", { body: "of the topic" });
  await client.close();
}

test("a key that listens to a queue shows that alone", async ({ broker, open }) => {
  await fill(broker);
  const page = await open();
  await signIn(page, connectionString(broker, "reader", "orders"));
  await page.getByText("1 queue, 0 topics").waitFor();
  assert.deepEqual(await page.locator("nav a").allTextContents(), ["Overview", "Entities", "Topology"]);
  assert.equal(await page.locator(".figure", { hasText: "Active messages" }).locator("strong").textContent(), "2");
  await checkAccess(page, "the overview of an entity's key");
  await page.getByRole("link", { name: "Entities" }).click();
  await page.getByRole("heading", { name: "1 entity" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "New entity" }).count(), 0);
  await page.getByRole("link", { name: "orders" }).click();
  await page.getByRole("heading", { name: "orders" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Delete" }).count(), 0);
  await page.getByRole("link", { name: "Messages" }).click();
  await page.getByRole("button", { name: "1", exact: true }).click();
  await page.getByRole("dialog").getByText("Application properties").waitFor();
  for (const name of ["History", "Send again", "Complete"]) {
    assert.equal(await page.getByRole("dialog").getByText(name, { exact: true }).count(), 0, name);
  }
  await page.getByRole("button", { name: "Close" }).click();
  for (const tab of ["dead-letters", "why", "settings"]) {
    await visit(page, broker, entity("orders", tab));
    await page.locator(".panel").first().waitFor();
    assert.equal(await page.getByRole("alert").count(), 0, tab);
  }
  await visit(page, broker, "topology");
  await page.locator("svg a.box").first().waitFor();
  assert.equal(await page.locator("svg a.box").count(), 1);
  await visit(page, broker, entity("invoices"));
  await page.getByText("There is no entity invoices.").waitFor();
  for (const [method, path] of [
    ["GET", "entities/invoices"],
    ["GET", "entities/invoices/messages"],
    ["GET", "entities"],
    ["GET", "namespaces/default/history"],
    ["GET", "connections"],
    ["POST", "entities/orders/messages"],
    ["POST", "entities/orders/purge"],
    ["PATCH", "entities/orders"],
    ["DELETE", "entities/orders"],
  ]) {
    assert.equal(await ask(page, method, path), 401, `${method} ${path}`);
  }
}, { config: CONFIG });

test("a key that sends to a queue sends to that alone", async ({ broker, open }) => {
  const page = await open();
  await signIn(page, connectionString(broker, "writer", "orders"));
  await page.getByLabel("Queue or topic").fill("orders");
  await page.getByLabel("Body").fill("hello");
  await page.locator("main").getByRole("button", { name: "Send" }).click();
  await page.getByText("The message is stored as number 1.").waitFor();
  await page.getByLabel("Queue or topic").fill("invoices");
  await page.locator("main").getByRole("button", { name: "Send" }).click();
  await page.getByRole("alert").waitFor();
  assert.deepEqual(await page.locator("nav a").allTextContents(), ["Send"]);
  for (const path of ["counts", "overview", "entities/orders/messages"]) {
    assert.equal(await ask(page, "GET", path), 401, path);
  }
}, { config: CONFIG });

test("a key that manages a topic changes it and its subscriptions", async ({ broker, open }) => {
  await fill(broker);
  const page = await open();
  await signIn(page, "key-of-the-keeper", "keeper");
  await page.getByText("0 queues, 1 topic").waitFor();
  await visit(page, broker, entity("events/Subscriptions/all", "messages"));
  await page.getByRole("cell", { name: "of the topic" }).waitFor();
  await page.getByRole("button", { name: "Delete all" }).click();
  await agree(page, "Delete");
  await page.getByText("1 message deleted, 0 stayed.").waitFor();
  await visit(page, broker, entity("events/Subscriptions/all", "settings"));
  await page.getByLabel("max-delivery-count").fill("7");
  await page.getByRole("button", { name: "Show the change" }).click();
  await page.getByText("max-delivery-count: 10 → 7").waitFor();
  await checkAccess(page, "a change by an entity's key");
  await agree(page, "Change");
  await page.getByText("The settings are changed.").waitFor();
  for (const [method, path] of [
    ["PUT", "entities/new"],
    ["POST", "entities/invoices/purge"],
    ["POST", "apply"],
    ["GET", "namespaces"],
  ]) {
    assert.equal(await ask(page, method, path), 401, `${method} ${path}`);
  }
}, { config: CONFIG });
