// Namespaces: chosen, seen alone, changed alone; their faults, snapshots, clocks and lineage.
"use strict";

const assert = require("node:assert/strict");
const { ServiceBusClient } = require("@azure/service-bus");
const { PHONE, agree, api, checkAccess, entity, receive, send, test, visit } = require("./support.js");

/** Makes a namespace with a queue `orders`, and a client of it. */
async function makeNamespace(broker, name) {
  const made = await api(broker, "PUT", `namespaces/${name}`, {});
  await api(broker, "PUT", `namespaces/${name}/entities/orders`, {});
  return new ServiceBusClient(made["connection-string"]);
}

test("why the next message and one message are not delivered", async ({ broker, client, open }) => {
  const sender = client.createSender("orders");
  await sender.sendMessages([{ body: "a" }, { body: "b" }]);
  const later = new Date(Date.now() + 3_600_000);
  const [scheduled] = await sender.scheduleMessages({ body: "later" }, later);
  await sender.close();
  const page = await open();
  await visit(page, broker, entity("orders"));
  await page.getByRole("link", { name: "Why" }).click();
  await page.getByText("no-receiver").waitFor();
  await checkAccess(page, "why");
  await page.getByLabel("Sequence number").fill(String(scheduled));
  await page.getByRole("button", { name: "Ask" }).click();
  await page.getByRole("heading", { name: `Why message ${scheduled} is not delivered` }).waitFor();
  await page.getByText("it is scheduled for", { exact: false }).waitFor();
  await page.getByLabel("Sequence number").fill("seven");
  await page.getByRole("button", { name: "Ask" }).click();
  await page.getByRole("alert").getByText("sequence", { exact: false }).waitFor();

  // The page follows what becomes of the message.
  await visit(page, broker, entity("orders", "messages"));
  await page.getByRole("button", { name: "1", exact: true }).click();
  await page.getByRole("dialog").getByRole("link", { name: "Why" }).click();
  await page.getByText("no-receiver").waitFor();
  const receiver = client.createReceiver("orders");
  const [first] = await receive(receiver, 1);
  await page.getByText("it is locked by connection", { exact: false }).waitFor();
  await receiver.deadLetterMessage(first, { deadLetterReason: "Refused" });
  await page.getByText("it is in the dead-letter queue; reason: Refused", { exact: false }).waitFor();
  await page.getByLabel("Part", { exact: true }).selectOption("Dead letters");
  await page.getByText("no-receiver").waitFor();
  await receiver.close();
});

test("the history of a message by its id, its number and its session", async ({ broker, client, open }) => {
  await send(client, "sessions", { messageId: "m 1/2", sessionId: "customer 1", body: "a" });
  await send(client, "orders", { messageId: "other", body: "b" });
  const receiver = client.createReceiver("orders", { receiveMode: "receiveAndDelete" });
  await receive(receiver, 1);
  await receiver.close();
  const page = await open();
  const rows = page.locator("tbody tr");
  const show = async (fields) => {
    await visit(page, broker, "lineage");
    await page.getByText("What has happened").waitFor();
    for (const [label, text] of Object.entries(fields)) await page.getByLabel(label).fill(text);
    await page.getByRole("button", { name: "Show" }).click();
    await page.waitForFunction(() => location.hash.includes("?"));
  };
  await show({ "Message id": "m 1/2" });
  await page.getByText("sessions #1").waitFor();
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
  await show({ "Session id": "customer 1" });
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
  await show({ Entity: "orders", "Sequence number": "1" });
  await page.waitForFunction(() => {
    const rows = [...document.querySelectorAll("tbody tr")];
    return rows.length > 1 && rows.every((row) => row.textContent.includes("orders #1"));
  });
  await checkAccess(page, "lineage");
  await show({ "Message id": "never" });
  await page.getByText("The record has nothing of it.").waitFor();
  await show({ "Sequence number": "1" });
  await page.getByRole("alert").getByText("name that too", { exact: false }).waitFor();
  await visit(page, broker, entity("sessions", "messages"));
  await page.getByRole("button", { name: "1", exact: true }).click();
  await page.getByRole("dialog").getByRole("link", { name: "History" }).click();
  await page.getByRole("cell", { name: "accepted", exact: true }).waitFor();
  assert.equal(await rows.count(), 1);
});

test("a broker without a record says how to get one", async ({ broker, open }) => {
  const page = await open();
  await visit(page, broker, "lineage");
  await page.getByText("Nothing is recorded of this namespace.").waitFor();
}, { config: "lineage = false\n" });

test("a fault rule is added, told on every page, fails a send, and is removed", async ({ broker, client, open }) => {
  const page = await open();
  await visit(page, broker, "faults");
  await page.getByText("There is no rule, so nothing fails on purpose.").waitFor();
  const add = async (fields) => {
    await page.getByRole("button", { name: "New rule" }).click();
    for (const [label, text] of Object.entries(fields)) {
      const field = page.getByRole("dialog").getByLabel(label, { exact: label === "Name" || label.startsWith("Effect") });
      if (label === "Effect") await field.selectOption(text);
      else await field.fill(text);
    }
    await agree(page, "Add the rule");
  };
  await add({ Name: "full", Effect: "refuse: quota-exceeded", Entity: "orders", Operations: "send, schedule", Times: "1" });
  await page.getByText("The rule full is added.").waitFor();
  await page.getByText('{"entity":"orders","operations":["send","schedule"]', { exact: false }).waitFor();
  await add({ Name: "third", Effect: "deliver again", "Effect in JSON": "{", "Further conditions": "[3]" });
  await page.getByRole("alert").getByText("not an object in JSON", { exact: false }).waitFor();
  await page.getByLabel("Further conditions").fill('{"every": 3}');
  await agree(page, "Add the rule");
  await page.getByRole("alert").getByText("Effect in JSON: not JSON").waitFor();
  await page.getByLabel("Effect in JSON").fill('{"delay-ms": 1}');
  await checkAccess(page, "a new fault rule");
  await page.getByLabel("Further conditions").fill('{"every": 0}');
  await agree(page, "Add the rule");
  await page.getByRole("alert").getByText("every", { exact: false }).waitFor();
  await page.getByLabel("Further conditions").fill('{"every": 3}');
  await agree(page, "Add the rule");
  await page.getByText("The rule third is added.").waitFor();
  await checkAccess(page, "faults");

  await visit(page, broker, "entities");
  await page.getByRole("status").getByRole("link", { name: "2 fault rules" }).waitFor();
  await assert.rejects(send(client, "orders", { body: "a" }), { code: "QuotaExceeded" });
  await send(client, "orders", { body: "b" });
  await page.getByRole("link", { name: "2 fault rules" }).click();
  const row = page.getByRole("row", { name: /full/ });
  await row.getByRole("cell", { name: "1", exact: true }).first().waitFor();

  await row.getByRole("button", { name: "Remove" }).click();
  await page.getByText("The rule full of the namespace default is removed.", { exact: false }).waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await row.count(), 1);
  await row.getByRole("button", { name: "Remove" }).click();
  await agree(page, "Remove", "Remove full");
  await page.getByText("The rule full is removed.").waitFor();
  await page.getByRole("button", { name: "Remove all" }).click();
  await page.getByText("All 1 fault rule of the namespace default are removed.", { exact: false }).waitFor();
  await agree(page, "Remove all");
  await page.getByText("There is no rule, so nothing fails on purpose.").waitFor();
  await page.getByRole("status").getByText("Operations fail on purpose").waitFor({ state: "detached" });
});

test("a snapshot is taken, gone back to, forked and removed", async ({ broker, client, open }) => {
  await send(client, "orders", { body: "a" }, { body: "b" });
  const page = await open();
  await visit(page, broker, "snapshots");
  await page.getByText("There is no snapshot.").waitFor();
  await page.getByLabel("Name of the snapshot").fill("filled");
  await page.getByRole("button", { name: "Take a snapshot" }).click();
  await page.getByText("The snapshot filled has 9 entities and 2 messages.").waitFor();
  await page.getByLabel("Name of the snapshot").fill("filled");
  await page.getByRole("button", { name: "Take a snapshot" }).click();
  await page.getByRole("alert").getByText("filled", { exact: false }).waitFor();
  await checkAccess(page, "snapshots");

  const receiver = client.createReceiver("orders", { receiveMode: "receiveAndDelete" });
  await receive(receiver, 2);
  await receiver.close();
  const row = page.getByRole("row", { name: /filled/ });
  await row.getByRole("button", { name: "Restore" }).click();
  await page.getByText("All entities and messages that the namespace default has now are deleted", { exact: false }).waitFor();
  await checkAccess(page, "the question before a restore");
  await agree(page, "Restore");
  await page.getByText("The namespace default is as it was in filled.").waitFor();
  const again = client.createReceiver("orders");
  assert.equal((await again.peekMessages(10)).length, 2);
  await again.close();

  await row.getByRole("button", { name: "Fork" }).click();
  await page.getByLabel("Name of the new namespace").fill("No Name");
  await agree(page, "Fork");
  await page.getByRole("dialog").getByRole("alert").waitFor();
  await page.getByLabel("Name of the new namespace").fill("second");
  await agree(page, "Fork");
  await page.getByRole("heading", { name: "The namespace second is made" }).waitFor();
  const forked = new ServiceBusClient(await page.locator("code.long").textContent());
  const other = forked.createReceiver("orders");
  assert.equal((await other.peekMessages(10)).length, 2);
  await forked.close();

  await row.getByRole("button", { name: "Remove" }).click();
  await page.getByText("What the namespace has now stays.", { exact: false }).waitFor();
  await agree(page, "Remove");
  await page.getByText("There is no snapshot.").waitFor();
  await page.getByRole("button", { name: "Fork as it is now" }).click();
  await page.getByLabel("Name of the new namespace").fill("third");
  await agree(page, "Fork");
  await page.getByRole("link", { name: "Go to third" }).click();
  await page.getByRole("link", { name: "orders" }).first().waitFor();
  assert.ok(page.url().endsWith("#/@third"), page.url());
});

test("a namespace is chosen, and every page is about it alone", async ({ broker, client, open }) => {
  const shop = await makeNamespace(broker, "shop");
  await send(client, "orders", { body: "of default" });
  const page = await open();
  await page.getByRole("heading", { name: "Namespaces" }).waitFor();
  await page.getByRole("button", { name: "Namespace default" }).click();
  const dialog = page.getByRole("dialog", { name: "Namespaces" });
  await checkAccess(page, "the choice of a namespace");
  await dialog.getByLabel("Search namespaces").fill("SHO");
  await dialog.getByRole("link", { name: "default" }).waitFor({ state: "detached" });
  await dialog.getByRole("link", { name: "shop" }).click();
  await page.getByText("1 queue, 0 topics").waitFor();
  assert.equal(await page.getByRole("link", { name: "Connections" }).count(), 0);
  await checkAccess(page, "the overview of a namespace");

  // Live figures, the table, and a message, which only this namespace has.
  await page.getByRole("link", { name: "Send" }).click();
  await page.getByLabel("Queue or topic").fill("orders");
  await page.getByLabel("Body").fill("of shop");
  await page.locator("main").getByRole("button", { name: "Send" }).click();
  await page.getByText("The message is stored as number 1.").waitFor();
  await page.getByRole("link", { name: "Entities" }).click();
  await page.getByRole("heading", { name: "1 entity" }).waitFor();
  await page.getByRole("link", { name: "orders" }).click();
  await page.getByRole("link", { name: "Messages" }).click();
  await page.getByRole("cell", { name: "of shop" }).waitFor();
  assert.equal(await page.getByText("of default").count(), 0);
  await page.reload();
  await page.getByRole("cell", { name: "of shop" }).waitFor();
  await page.getByRole("button", { name: "Delete all" }).click();
  await agree(page, "Delete");
  await page.getByText("1 message deleted, 0 stayed.").waitFor();

  // Entities and settings.
  await visit(page, broker, "@shop/entities");
  await page.getByRole("button", { name: "New entity" }).click();
  await page.getByLabel("Name", { exact: true }).fill("baskets");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "baskets" }).waitFor();
  await page.getByRole("link", { name: "Settings" }).last().click();
  await page.getByLabel("max-delivery-count").fill("7");
  await page.getByRole("button", { name: "Show the change" }).click();
  await page.getByText("max-delivery-count: 10 → 7").waitFor();
  await agree(page, "Change");
  await page.getByText("The settings are changed.").waitFor();
  await page.getByRole("button", { name: "Delete" }).click();
  await agree(page, "Delete");
  // Until the page has gone back to the list, it would leave any other.
  await page.getByRole("button", { name: "New entity" }).waitFor();
  await visit(page, broker, "@shop/settings");
  await page.getByLabel("The file in JSON").fill('{"queues": [{"name": "planned"}]}');
  await page.getByRole("button", { name: "Show the plan" }).click();
  await page.getByText("queue planned").waitFor();
  await page.getByRole("button", { name: "Apply" }).click();
  await agree(page, "Apply");
  await page.getByRole("status").getByText("1 change applied.").waitFor();
  const paths = async (prefix) => (await api(broker, "GET", `${prefix}counts`)).entities.map((one) => one.path);
  assert.deepEqual(await paths("namespaces/shop/"), ["orders", "planned"]);
  assert.ok(!(await paths("")).includes("planned"));

  // Topology, faults, the clock, and the way back.
  await visit(page, broker, "@shop/topology");
  await page.getByText("planned").locator("visible=true").first().waitFor();
  assert.equal(await page.getByText("invoices").count(), 0);
  await api(broker, "POST", "namespaces/shop/faults", { name: "busy", effect: "deliver-again" });
  await visit(page, broker, "@shop/faults");
  await page.getByRole("row", { name: /busy/ }).waitFor();
  await page.getByRole("link", { name: "1 fault rule" }).waitFor();
  await visit(page, broker, "@shop/clock");
  await page.getByLabel("Duration in ISO 8601").fill("PT3H");
  await page.getByRole("button", { name: "Advance" }).click();
  await agree(page, "Advance");
  await page.getByText("PT3H", { exact: true }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Freeze" }).count(), 0);
  assert.equal((await api(broker, "GET", "clock")).offset, "PT0S");
  await page.getByRole("button", { name: "Namespace shop" }).click();
  await dialog.getByRole("link", { name: "default" }).click();
  await page.getByText("6 queues, 1 topic").waitFor();
  await page.getByRole("status").getByText("alarm", { exact: false }).waitFor();
  assert.equal(await page.locator(".banner").count(), 0);
  await visit(page, broker, "clock");
  await page.getByLabel("Whose clock").selectOption("The namespace default alone");
  await page.getByRole("button", { name: "Advance" }).click();
  await agree(page, "Advance");
  await page.getByText("PT1H", { exact: true }).waitFor();
  await visit(page, broker, "@nowhere/entities");
  await page.getByRole("alert").getByText("there is no namespace of that name").waitFor();
  await shop.close();
});

test("a namespace can be chosen on a phone and by the keyboard", async ({ broker, open }) => {
  await api(broker, "PUT", "namespaces/shop", {});
  const page = await open({ viewport: PHONE });
  await page.getByRole("button", { name: "Namespace default" }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Namespaces" });
  await dialog.getByRole("link", { name: "shop" }).waitFor();
  const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.equal(width, 0);
  await dialog.getByRole("link", { name: "shop" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Namespace shop" }).waitFor();
});

const KEYS = `
[[auth.rules]]
name = "owner"
primary-key = "key-of-the-owner"
rights = ["send", "listen", "manage"]
`;

test("a key of a namespace shows that one alone", async ({ broker, open }) => {
  const headers = { authorization: `Basic ${btoa("owner:key-of-the-owner")}` };
  const made = await api(broker, "PUT", "namespaces/shop", {}, headers);
  await api(broker, "PUT", "namespaces/shop/entities/baskets", {}, headers);
  const page = await open();
  await page.getByLabel("Connection string, key or token").fill(made["connection-string"]);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("1 queue, 0 topics").waitFor();
  for (const name of ["Connections", "Clock", "Faults", "Snapshots"]) {
    assert.equal(await page.getByRole("link", { name }).count(), 0, name);
  }
  assert.equal(await page.getByRole("button", { name: /^Namespace/ }).count(), 0);
  await page.getByRole("link", { name: "Entities" }).click();
  await page.getByRole("link", { name: "baskets" }).waitFor();
  const status = (path) => page.evaluate((path) => fetch(`/$railbus/${path}`).then((answer) => answer.status), path);
  for (const path of ["counts", "overview", "namespaces/shop/counts", "namespaces/shop/history"]) {
    assert.equal(await status(path), 200, path);
  }
  for (const path of ["namespaces/default/counts", "namespaces/default/entities/orders/messages", "namespaces"]) {
    assert.equal(await status(path), 403, path);
  }
  for (const path of ["connections", "clock", "namespaces/shop/faults", "namespaces/shop/snapshots"]) {
    assert.equal(await status(path), 403, path);
  }
  await visit(page, broker, "@default/entities");
  await page.getByText("The namespace default is not that of your key, shop.", { exact: false }).waitFor();
}, { config: KEYS });
