// What pages show of messages, connections and alarms, page by page, and dialogs as axe sees them.
"use strict";

const assert = require("node:assert/strict");
const { api, checkAccess, checkTab, deadLetter, entity, send, test, visit } = require("./support.js");

test("scheduled messages stand on a timeline, and arrivals have a rate", async ({ begin, broker, client, open }) => {
  const at = (hours) => new Date(Date.now() + hours * 3_600_000);
  const scheduled = [1, 2, 3].map((hours) => ({ body: `${hours}`, scheduledEnqueueTimeUtc: at(hours) }));
  await send(client, "orders", ...scheduled);
  const page = await open();
  await visit(page, broker, entity("orders"));
  await page.getByRole("img", { name: /^3 scheduled messages from .* to / }).waitFor();
  const marks = page.locator(".timeline span");
  const places = await marks.evaluateAll((marks) => marks.map((mark) => Math.round(Number.parseFloat(mark.style.left))));
  assert.deepEqual(places, [2, 50, 98]);
  assert.match(await marks.first().getAttribute("title"), /^#1, /);
  begin();
  for (const name of ["In, a second", "Completed, a second"]) {
    await page.waitForFunction(
      (name) =>
        [...document.querySelectorAll(".figure")].some(
          (figure) => figure.textContent.includes(name) && Number.parseFloat(figure.querySelector("strong").textContent) > 0,
        ),
      name,
    );
  }
  await page.getByRole("link", { name: "All", exact: true }).click();
  await page.getByRole("button", { name: "3", exact: true }).waitFor();
});

test("the timeline has the messages that are due first, whatever their numbers", async ({ broker, client, open }) => {
  const start = Date.now() + 3_600_000;
  const at = (minutes) => ({ body: "x", scheduledEnqueueTimeUtc: new Date(start + minutes * 60_000) });
  // The later its number, the earlier a message is due.
  await send(client, "orders", ...Array.from({ length: 205 }, (_, n) => at(205 - n)));
  const page = await open();
  await visit(page, broker, entity("orders"));
  await page.getByRole("heading", { name: "The next 200 of 205 scheduled messages" }).waitFor();
  const marks = page.locator(".timeline span");
  assert.match(await marks.first().getAttribute("title"), /^#205, /);
  assert.match(await marks.last().getAttribute("title"), /^#6, /);
  await send(client, "orders", at(0));
  await page.getByRole("heading", { name: "The next 200 of 206 scheduled messages" }).waitFor();
  await page.locator(".timeline span[title^='#206, ']").waitFor();
});

test("the timeline begins with what is due next, however many are scheduled", async ({ broker, client, open }) => {
  const start = Date.now() + 3_600_000;
  const at = (minutes) => ({ body: "x", scheduledEnqueueTimeUtc: new Date(start + minutes * 60_000) });
  for (let times = 0; times < 11; times += 1) await send(client, "orders", ...Array.from({ length: 1000 }, (_, n) => at(60 + n)));
  await send(client, "orders", at(2), at(1), at(0));
  const page = await open();
  await visit(page, broker, entity("orders"));
  await page.getByRole("heading", { name: /^The next 200 of 11.003 scheduled messages$/ }).waitFor();
  const titles = await page.locator(".timeline span").evaluateAll((marks) => marks.map((mark) => mark.title.split(",")[0]));
  assert.equal(titles.length, 200);
  assert.deepEqual(titles.slice(0, 4), ["#11003", "#11002", "#11001", "#1"]);
});

test("the state of a session is shown, be it held or not", async ({ broker, client, open }) => {
  // The SDK would set a text as JSON.
  const states = { tree: Buffer.from('{"step": 3}'), text: Buffer.from("plain text"), bytes: Buffer.from([0xff, 0, 1]) };
  for (const [id, state] of Object.entries(states)) {
    const session = await client.acceptSession("sessions", id);
    await session.setSessionState(state);
    if (id !== "text") await session.close();
  }
  await send(client, "sessions", { sessionId: "a/b?c", body: "x" });
  const page = await open();
  await visit(page, broker, entity("sessions"));
  await page.getByRole("heading", { name: "Sessions (2)" }).waitFor();
  const all = page.locator(".panel", { hasText: "Sessions with messages or a state" });
  await all.getByRole("button", { name: "Show", exact: true }).click();
  await all.getByRole("row").nth(4).waitFor();
  assert.equal(await all.getByRole("row").count(), 5);
  await checkAccess(page, "all sessions");
  const dialog = page.getByRole("dialog");
  for (const [id, holder, shown] of [
    ["tree", "It is not held.", "step: 3"],
    ["text", /^It is held by the connection \d+\.$/, "plain text"],
    ["bytes", "It is not held.", /^000000 {2}ff 00 01 /],
    ["a/b?c", "It is not held.", "It has no state."],
  ]) {
    await all.getByRole("button", { name: `Show the state of ${id}`, exact: true }).click();
    await dialog.getByText(holder).waitFor();
    await dialog.getByText(shown).waitFor();
    await checkAccess(page, `the state of ${id}`);
    await dialog.getByRole("button", { name: "Close" }).click();
  }
  const live = page.locator(".panel", { hasText: "Sessions (2)" });
  await live.getByRole("button", { name: "Show the state of text", exact: true }).click();
  await dialog.getByText("plain text").waitFor();
  await checkTab(page, "the state of a session", "dialog");
});

test("a connection shows what is unsettled and its last error", async ({ broker, client, open }) => {
  await send(client, "orders", { body: "a" });
  const receiver = client.createReceiver("orders");
  const [held] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 10_000 });
  // The queue has no sessions.
  await assert.rejects(client.acceptSession("orders", "none"));
  const page = await open();
  await visit(page, broker, "connections");
  const row = page.getByRole("row", { name: /orders/ });
  const cell = (name) => row.locator("td").nth(["Connection", "Client", "Peer", "Open for", "Addresses", "Links", "Unsettled", "Errors"].indexOf(name));
  await cell("Unsettled").getByText("1", { exact: true }).waitFor();
  assert.notEqual(await cell("Errors").textContent(), "0");
  await row.getByRole("button").first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("amqp:not-allowed").waitFor();
  await dialog.getByRole("row", { name: /orders receiver .* 1$/ }).waitFor();
  await checkAccess(page, "a connection");
  await receiver.completeMessage(held);
  await cell("Unsettled").getByText("0", { exact: true }).waitFor();
  await receiver.close();
});

test("an entity that is nearly full is an alarm, and commits have a time", async ({ broker, client, open }) => {
  await api(broker, "PUT", "entities/small", { "max-size-in-megabytes": 1 });
  const page = await open();
  await page.getByText("no alarms").waitFor();
  for (let n = 0; n < 5; n += 1) await send(client, "small", { body: Buffer.alloc(195_000, "x") });
  const alarms = page.locator(".panel", { hasText: "Alarms" });
  await alarms.getByText(/of 1048576 bytes are used: at the maximum size, sends are refused/).waitFor();
  await alarms.getByText("warning", { exact: true }).waitFor();
  await page.getByRole("status").getByRole("link", { name: "1 alarm" }).waitFor();
  await page.locator(".figure", { hasText: "Commit" }).locator("strong", { hasText: /^\d+\.\d\d ms$/ }).waitFor();
  await alarms.getByRole("link", { name: "small" }).click();
  await page.getByRole("heading", { name: "small", exact: true }).waitFor();
});

test("the topology shows the way of dead letters and how many pass", async ({ broker, client, open }) => {
  const page = await open();
  await visit(page, broker, "topology");
  const way = page.locator("g", { has: page.locator("path.way.dead") });
  await way.locator("title", { hasText: /^payments .* audit$/ }).waitFor({ state: "attached" });
  let isShown = false;
  const shown = way.locator("text.flow").waitFor().then(() => (isShown = true));
  while (!isShown) {
    await send(client, "payments", { body: "x" });
    await deadLetter(client, "payments", 1, "Refused");
  }
  await shown;
  assert.match(await way.locator("text.flow").textContent(), /^[\d.,]+\/s$/);
});

test("messages and dead letters come by page, and are found by their session", async ({ broker, client, open }) => {
  const messages = Array.from({ length: 60 }, (_, n) => ({ messageId: `m${n}`, body: `${n}` }));
  await send(client, "orders", ...messages);
  await send(client, "invoices", ...messages);
  await deadLetter(client, "invoices", 60, "Refused");
  await send(client, "sessions", ...["one", "two", "one"].map((sessionId) => ({ sessionId, body: sessionId })));
  const page = await open();
  const number = (number) => page.getByRole("button", { name: String(number), exact: true });
  for (const place of [entity("orders", "messages"), entity("invoices", "dead-letters")]) {
    await visit(page, broker, place);
    await number(50).waitFor();
    assert.equal(await number(51).count(), 0);
    assert.ok(await page.getByRole("button", { name: "First" }).isDisabled());
    await page.getByRole("button", { name: "Next" }).click();
    await number(60).waitFor();
    assert.equal(await number(50).count(), 0);
    await page.getByRole("button", { name: "First" }).click();
    await number(1).waitFor();
  }
  await visit(page, broker, entity("sessions", "messages"));
  await page.getByLabel("Filter in SQL").fill("sys.SessionId = 'one'");
  await page.getByRole("button", { name: "Search" }).click();
  await number(2).waitFor({ state: "detached" });
  await number(1).waitFor();
  await number(3).waitFor();
});

test("dead letters of failed transfers are shown", async ({ broker, client, open }) => {
  const names = ["hop1", "hop2", "hop3", "hop4", "hop5", "hop6", "hop7"];
  for (const [at, name] of [...names.entries()].reverse()) {
    const next = names[at + 1];
    await api(broker, "PUT", `entities/${name}`, next ? { "forward-to": next } : {});
  }
  await send(client, "hop1", { messageId: "too-far", body: "x" });
  let stuck;
  while (!stuck) {
    const { entities } = await api(broker, "GET", "counts?search=hop");
    stuck = entities.find((one) => one["transfer-dead-letter"] === 1);
  }
  const page = await open();
  await visit(page, broker, entity(stuck.path, "messages"));
  await page.getByLabel("Part", { exact: true }).selectOption("transfer-dead-letter");
  await page.getByRole("row", { name: /too-far/ }).getByRole("button").first().click();
  await page.getByRole("dialog").getByText("too-far").first().waitFor();
});

test("a topic and a subscription are made", async ({ broker, open }) => {
  const page = await open();
  const make = async (kind, fields) => {
    await visit(page, broker, "entities");
    await page.getByRole("button", { name: "New entity" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Kind").selectOption(kind);
    for (const [name, text] of fields) await dialog.getByLabel(name, { exact: true }).fill(text);
    if (kind === "topic") await checkAccess(page, "a new entity");
    await page.getByRole("button", { name: "Create" }).click();
  };
  await make("topic", [["Name", "news"]]);
  await page.getByRole("heading", { name: "news", exact: true }).waitFor();
  await make("subscription", [["Topic", "news"], ["Name", "mine"]]);
  await page.getByRole("heading", { name: "news/Subscriptions/mine" }).waitFor();
  const { kind: made, subscriptions } = await api(broker, "GET", "entities/news");
  assert.equal(made, "topic");
  assert.deepEqual(subscriptions.map((one) => one.name), ["mine"]);
});

test("a message is sent with a time to live, and one for later", async ({ broker, client, open }) => {
  const page = await open();
  const submit = async (label, text, number) => {
    await visit(page, broker, "overview");
    await visit(page, broker, "send?path=orders");
    await page.getByLabel("Body").fill("x");
    await page.getByLabel(label).fill(text);
    await page.locator("main").getByRole("button", { name: "Send" }).click();
    await page.getByText(`The message is stored as number ${number}.`).waitFor();
  };
  await submit("Time to live", "PT2M", 1);
  await submit("Enqueue at", "2100-01-01T00:00:00Z", 2);
  const receiver = client.createReceiver("orders");
  const [mortal, later] = await receiver.peekMessages(2);
  await receiver.close();
  assert.equal(mortal.timeToLive, 120_000);
  assert.equal(later.state, "scheduled");
  assert.equal(later.scheduledEnqueueTimeUtc.toISOString(), "2100-01-01T00:00:00.000Z");
});

test("axe finds nothing in dialogs and questions, whose controls Tab reaches, and the keyboard leaves", async ({ broker, client, open }) => {
  await send(client, "orders", ...["a", "b", "c"].map((body) => ({ body })));
  await deadLetter(client, "orders", 1, "Refused");
  await api(broker, "POST", "namespaces/default/snapshots", { name: "before" });
  await api(broker, "POST", "namespaces/default/fork", { name: "second" });
  await api(broker, "POST", "namespaces/second/faults", { name: "busy", effect: "deliver-again" });
  const page = await open();
  // One dialog may lie over another.
  const check = async (what, depth = 1) => {
    const dialogs = page.locator("dialog[open]");
    await dialogs.nth(depth - 1).waitFor();
    await checkAccess(page, what);
    await checkTab(page, what, "dialog[open]:not(:has(dialog[open]))");
    await page.keyboard.press("Escape");
    await dialogs.nth(depth - 1).waitFor({ state: "detached" });
  };
  const ask = (name, scope = page) => scope.getByRole("button", { name, exact: true }).first().press("Enter");
  await page.getByText("Longest backlogs").waitFor();
  await page.keyboard.press("?");
  await check("keys");
  await visit(page, broker, "entities");
  await ask("New entity");
  await page.getByLabel("Kind").last().selectOption("subscription");
  await check("a new entity");
  await visit(page, broker, entity("orders"));
  await ask("Delete");
  await check("the deletion of a queue");
  await visit(page, broker, entity("orders", "messages"));
  await ask("Delete all");
  await check("the deletion of messages");
  await ask("2");
  const message = page.getByRole("dialog", { name: "Message 2" });
  for (const name of ["Abandon", "Defer", "Dead-letter", "Complete"]) {
    await ask(name, message);
    await check(`${name} of a message`, 2);
  }
  await check("a message");
  await visit(page, broker, entity("orders", "dead-letters"));
  await ask("Delete", page.getByRole("row", { name: /Refused/ }).first());
  await check("the deletion of dead letters");
  await ask("1", page.locator(".panel").last());
  await ask("Redrive", page.getByRole("dialog", { name: "Message 1" }));
  await check("Redrive of a dead letter", 2);
  await check("a dead letter");
  await visit(page, broker, entity("orders", "settings"));
  await page.getByLabel("max-delivery-count").fill("7");
  await ask("Show the change");
  await page.getByText("max-delivery-count: 3 → 7").waitFor();
  await check("a plan");
  await visit(page, broker, "settings");
  await page.getByLabel("The file in JSON").fill('{"queues": [{"name": "planned"}]}');
  await ask("Show the plan");
  await page.getByText("queue planned").waitFor();
  await ask("Apply");
  await check("the question before a file is applied");
  await visit(page, broker, "connections");
  const connection = page.getByRole("row", { name: /127\.0\.0\.1/ }).first();
  await ask("Close", connection);
  await check("the closing of a connection");
  await connection.getByRole("button").first().press("Enter");
  await check("a connection");
  await visit(page, broker, "clock");
  await ask("Advance");
  await check("the advance of the clock");
  await visit(page, broker, "snapshots");
  for (const name of ["Restore", "Fork", "Remove"]) {
    await ask(name, page.getByRole("row", { name: /before/ }));
    await check(`${name} of a snapshot`);
  }
  await ask("Namespace default");
  await page.getByRole("dialog").getByRole("link", { name: "second" }).waitFor();
  await check("the choice of a namespace");
  await visit(page, broker, "@second/faults");
  await ask("Remove", page.getByRole("row", { name: /busy/ }));
  await check("the removal of a fault rule");
  await ask("Remove all");
  await check("the removal of all fault rules");
  await ask("New rule");
  await check("a new fault rule");
  await visit(page, broker, entity("orders", "dead-letters"));
  await page.getByRole("heading", { name: "orders" }).waitFor();
});

test("axe finds nothing on the page that edits a dead letter", async ({ broker, client, open }) => {
  await send(client, "orders", { body: "a" });
  await deadLetter(client, "orders", 1, "Refused");
  const page = await open();
  await visit(page, broker, entity("orders", "dead-letters"));
  await page.locator(".panel").last().getByRole("button", { name: "1", exact: true }).click();
  await page.getByRole("dialog").getByRole("link", { name: "Edit and redrive" }).click();
  await page.getByRole("heading", { name: "Edit and redrive" }).waitFor();
  await checkAccess(page, "edit and redrive");
  await checkTab(page, "edit and redrive");
});

test("each control of a page is reached by Tab", async ({ broker, client, open }) => {
  await send(client, "orders", { body: "a" }, { body: "b" });
  await deadLetter(client, "orders", 1, "Refused");
  await api(broker, "POST", "namespaces/default/snapshots", { name: "before" });
  await api(broker, "POST", "namespaces/default/fork", { name: "second" });
  await api(broker, "POST", "namespaces/second/faults", { name: "busy", effect: "deliver-again" });
  const page = await open();
  const places = [
    ["overview", "", "Longest backlogs"],
    ["entities", "entities", "New entity"],
    ["queue", entity("orders"), "No receiver is attached"],
    ["topic", entity("events"), "billing"],
    ["messages", entity("orders", "messages"), "Delete all"],
    ["dead letters", entity("orders", "dead-letters"), "Refused"],
    ["why", entity("orders", "why"), "no receiver"],
    ["properties", entity("orders", "settings"), "max-delivery-count"],
    ["topology", "topology", "billing"],
    ["connections", "connections", "Open for"],
    ["send", "send?path=orders", "Application properties"],
    ["rules", "rules", "priority"],
    ["settings", "settings", "Delete what the file does not have"],
    ["lineage", "lineage", "it was accepted"],
    ["clock", "clock", "Time of the broker"],
    ["snapshots", "snapshots", "before"],
    ["faults", "@second/faults", "busy"],
  ];
  for (const [name, place, shows] of places) {
    await visit(page, broker, place);
    await page.getByText(shows, { exact: false }).locator("visible=true").first().waitFor();
    await checkTab(page, name);
  }
});
