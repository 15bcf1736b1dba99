// Each action of the console, and what the SDK sees of it.
"use strict";

const assert = require("node:assert/strict");
const { readFileSync } = require("node:fs");
const { ServiceBusClient } = require("@azure/service-bus");
const support = require("./support.js");

const { agree, api, deadLetter, entity, receive, send, visit } = support;

/** A test of an action. All the while an SDK sends, receives and completes messages of another queue. */
function test(name, body) {
  support.test(name, async (context) => {
    context.begin("payments");
    await body(context);
  });
}

/** The same without traffic, which the action itself would end. */
const quietTest = support.test;

test("a queue is made, changed and deleted", async ({ broker, open }) => {
  const page = await open();
  await visit(page, broker, "entities");
  await page.getByRole("button", { name: "New entity" }).click();
  await page.getByLabel("Name", { exact: true }).fill("made/here");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "made/here" }).waitFor();
  await page.getByRole("link", { name: "Settings" }).last().click();
  await page.getByLabel("max-delivery-count").fill("7");
  await page.getByRole("button", { name: "Show the change" }).click();
  await page.getByText("max-delivery-count: 10 → 7").waitFor();
  await agree(page, "Change");
  await page.getByText("The settings are changed.").waitFor();
  await page.locator(".settings div", { hasText: "max-delivery-count" }).getByText("set", { exact: true }).waitFor();
  await page.getByLabel("requires-session").fill("true");
  await page.getByRole("button", { name: "Show the change" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("requires-session").fill("false");
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByText("The queue made/here and everything in it is deleted").waitFor();
  await agree(page, "Delete");
  await page.waitForURL(/#\/entities$/);
  await page.getByText("invoices").first().waitFor();
  assert.equal(await page.getByText("made/here").count(), 0);
});

test("settings without a value, and those of a policy, are shown with where they come from, and set", async ({ broker, open }) => {
  const policy = { pattern: "^invoices$", definition: { "max-length": 7 } };
  await api(broker, "PUT", "policies/user/short", policy);
  const page = await open();
  await visit(page, broker, entity("invoices", "settings"));
  const setting = (name) => page.locator(".settings div", { has: page.getByText(name, { exact: true }) });
  const field = (name) => page.getByLabel(name, { exact: true });
  await setting("max-length").getByText("policy", { exact: true }).waitFor();
  await setting("max-length").getByText("in force: 7").waitFor();
  assert.equal(await field("max-length").inputValue(), "");
  await setting("expiry").getByText("broker", { exact: true }).waitFor();
  assert.equal(await field("expiry").getAttribute("placeholder"), "eager");
  assert.match(await field("max-message-size").getAttribute("placeholder"), /^\d+$/);
  await setting("forward-to").getByText("default", { exact: true }).waitFor();
  assert.equal(await field("forward-to").getAttribute("placeholder"), "none");
  await field("forward-to").fill("audit");
  await page.getByRole("button", { name: "Show the change" }).click();
  await page.getByText('forward-to: null → "audit"').waitFor();
  await agree(page, "Change");
  await page.getByText("The settings are changed.").waitFor();
  await setting("forward-to").getByText("set", { exact: true }).waitFor();
  assert.equal((await api(broker, "GET", "entities/invoices"))["forward-to"], "audit");
  await field("forward-to").fill("");
  await page.getByRole("button", { name: "Show the change" }).click();
  await agree(page, "Change");
  await setting("forward-to").getByText("default", { exact: true }).waitFor();
  assert.equal((await api(broker, "GET", "entities/invoices"))["forward-to"], undefined);
});

test("a message is sent, found, opened, sent again, edited and completed", async ({ broker, client, open }) => {
  const page = await open();
  await visit(page, broker, "send?path=orders");
  await page.getByLabel("Body").fill('{"a": [1, "two"]}');
  await page.getByLabel("Message id").fill("first");
  await page.getByLabel("Application properties").fill('{"color": "red"}');
  await page.locator("main").getByRole("button", { name: "Send" }).click();
  await page.getByText("The message is stored as number 1.").waitFor();
  await visit(page, broker, entity("orders", "messages"));
  await page.getByLabel("Filter in SQL").fill("color = 'blue'");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByText("No message fits.").waitFor();
  await page.getByLabel("Filter in SQL").fill("color = 'red' AND sys.MessageId = 'first'");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByRole("button", { name: "1", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText('"two"').waitFor();
  await dialog.getByRole("button", { name: "Hex" }).click();
  await dialog.getByText("000000  7b 22 61 22").waitFor();
  await dialog.getByRole("button", { name: "Send again" }).click();
  await page.getByText("A copy of message 1 is sent to orders.").waitFor();
  await page.getByRole("button", { name: "1", exact: true }).click();
  await page.getByRole("dialog").getByRole("link", { name: "Edit and send" }).click();
  assert.equal(await page.getByLabel("Message id").inputValue(), "first");
  await page.getByLabel("Message id").fill("edited");
  await page.locator("main").getByRole("button", { name: "Send" }).click();
  await page.getByText("The message is stored as number 3.").waitFor();
  await visit(page, broker, entity("orders", "messages"));
  await page.getByRole("button", { name: "1", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Complete" }).click();
  await page.getByText("The message is removed", { exact: false }).waitFor();
  await agree(page, "Complete", "Complete message 1");
  await page.getByText("Message 1 is completed.").waitFor();
  const receiver = client.createReceiver("orders", { receiveMode: "receiveAndDelete" });
  const received = [];
  while (received.length < 2) received.push(...(await receiver.receiveMessages(2, { maxWaitTimeInMs: 5000 })));
  assert.deepEqual(received.map((one) => one.messageId), ["first", "edited"]);
  assert.equal(received[1].applicationProperties.color, "red");
  await receiver.close();
});

test("dead letters are grouped, counted, redriven by a filter and deleted", async ({ broker, client, open }) => {
  const messages = Array.from({ length: 5 }, (_, n) => ({ messageId: `m${n}`, body: `${n}` }));
  await send(client, "orders", ...messages);
  await deadLetter(client, "orders", 3, "It's refused");
  await deadLetter(client, "orders", 2, "Unreadable");
  const page = await open();
  await visit(page, broker, entity("orders", "dead-letters"));
  await page.getByRole("button", { name: "It's refused" }).click();
  const filter = page.getByLabel("Filter of the redrive");
  await page.getByRole("button", { name: "Dry run" }).click();
  await page.getByText("3 dead letters would be redriven.").waitFor();
  assert.equal(await filter.inputValue(), "DeadLetterReason = 'It''s refused'");
  await page.getByRole("button", { name: "Redrive", exact: true }).click();
  await page.getByText("3 dead letters redriven, 0 stayed.").waitFor();
  await visit(page, broker, entity("orders", "dead-letters"));
  await page.getByRole("row", { name: /Unreadable/ }).getByRole("button", { name: "Delete" }).click();
  await page.getByText("This deletes 2 dead letters of orders. It cannot be undone.").waitFor();
  await agree(page, "Delete");
  await page.getByText("2 dead letters deleted.").waitFor();
  const receiver = client.createReceiver("orders");
  assert.equal((await receiver.peekMessages(10)).length, 3);
  await receiver.close();
});

test("one message is abandoned, deferred, dead-lettered and completed", async ({ broker, client, open }) => {
  await send(client, "orders", ...["a", "b", "c"].map((body) => ({ body })));
  const page = await open();
  const act = async (part, number, action, done) => {
    await visit(page, broker, entity("orders", "messages", `part=${part}`));
    await page.getByRole("button", { name: String(number), exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: action, exact: true }).click();
    if (action === "Dead-letter") await page.getByLabel("Reason", { exact: true }).fill("Wrong account");
    await agree(page, action, `${action} message ${number}`);
    await page.getByText(`Message ${number} is ${done}.`).waitFor();
  };
  await act("active", 1, "Abandon", "abandoned");
  await act("active", 2, "Defer", "deferred");
  await act("active", 3, "Dead-letter", "a dead letter");
  const receiver = client.createReceiver("orders");
  const peeked = await receiver.peekMessages(10);
  assert.deepEqual(peeked.map((one) => [one.body, one.deliveryCount, one.state]), [
    ["a", 1, "active"],
    ["b", 1, "deferred"],
  ]);
  const dead = client.createReceiver("orders", { subQueueType: "deadLetter" });
  const [wrong] = await dead.peekMessages(10);
  assert.equal(wrong.deadLetterReason, "Wrong account");
  // What another receiver holds stays with it.
  const [held] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 10_000 });
  await visit(page, broker, entity("orders", "messages"));
  await page.getByRole("button", { name: "1", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Complete" }).click();
  await agree(page, "Complete", "Complete message 1");
  await page.getByText("message 1 cannot be received: it is locked, or it has gone").waitFor();
  await receiver.completeMessage(held);
  await page.reload();
  await visit(page, broker, entity("orders"));
  await page.getByRole("heading", { name: "Deferred messages (1)" }).waitFor();
  await act("deferred", 2, "Complete", "completed");
  assert.deepEqual(await receiver.peekMessages(10), []);
  await receiver.close();
  await dead.close();
});

test("a dead letter is completed, and deferred messages are abandoned and dead-lettered", async ({ broker, client, open }) => {
  await send(client, "orders", ...["a", "b", "c"].map((body) => ({ body })));
  const receiver = client.createReceiver("orders");
  const [first, second, third] = await receive(receiver, 3);
  await receiver.deferMessage(first);
  await receiver.deferMessage(second);
  await receiver.deadLetterMessage(third, { deadLetterReason: "Refused" });
  const dead = client.createReceiver("orders", { subQueueType: "deadLetter" });
  const [letter] = await dead.peekMessages(1);
  // Without it a receiver peeks on from where it was.
  const all = { fromSequenceNumber: first.sequenceNumber };
  const page = await open();
  const act = async (part, number, action, done) => {
    await visit(page, broker, entity("orders", "messages", `part=${part}`));
    await page.getByRole("button", { name: String(number), exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: action, exact: true }).click();
    if (action === "Dead-letter") await page.getByLabel("Description", { exact: true }).fill("by hand");
    await agree(page, action, `${action} message ${number}`);
    await page.getByText(`Message ${number} is ${done}.`).waitFor();
  };
  await act("dead-letter", Number(letter.sequenceNumber), "Complete", "completed");
  assert.deepEqual(await dead.peekMessages(10, all), []);
  await act("deferred", 1, "Abandon", "abandoned");
  await act("deferred", 2, "Dead-letter", "a dead letter");
  const [left, ...others] = await receiver.peekMessages(10, all);
  assert.deepEqual(others, []);
  assert.deepEqual([left.body, left.deliveryCount, left.state], ["a", 2, "deferred"]);
  const [again] = await receiver.receiveDeferredMessages(first.sequenceNumber);
  await receiver.completeMessage(again);
  const [moved] = await dead.peekMessages(10, all);
  assert.deepEqual([moved.body, moved.deadLetterErrorDescription], ["b", "by hand"]);
  await receiver.close();
  await dead.close();
});

test("a dead letter is edited and redriven in place of itself", async ({ broker, client, open }) => {
  const properties = { state: "open", n: 5 };
  await send(client, "orders", { body: "acount 7", messageId: "m", replyTo: "answers", applicationProperties: properties });
  await deadLetter(client, "orders", 1, "Unreadable");
  const page = await open();
  await visit(page, broker, entity("orders", "dead-letters"));
  await page.locator(".panel").last().getByRole("button", { name: "1", exact: true }).click();
  await page.getByRole("dialog").getByRole("link", { name: "Edit and redrive" }).click();
  await page.getByText("The message goes to orders in place of dead letter 1", { exact: false }).waitFor();
  await page.getByLabel("Body").fill('"account 7"');
  await page.locator("main").getByRole("button", { name: "Redrive" }).click();
  await page.getByText("The message is stored as number 2, and dead letter 1 is removed.").waitFor();
  const receiver = client.createReceiver("orders");
  const [message] = await receiver.peekMessages(10);
  assert.equal(message.body, "account 7");
  assert.equal(message.messageId, "m");
  assert.equal(message.replyTo, "answers");
  assert.deepEqual(message.applicationProperties, properties);
  await receiver.close();
  const dead = client.createReceiver("orders", { subQueueType: "deadLetter" });
  assert.deepEqual(await dead.peekMessages(10), []);
  await dead.close();
});

test("a dead letter of a subscription is edited as bytes, and put back where it was", async ({ broker, client, open }) => {
  const subscription = "events/Subscriptions/all";
  const body = Buffer.from([0x00, 0xff, 0x10]);
  await send(client, "events", { body, applicationProperties: { state: "paid" } });
  await deadLetter(client, subscription, 1, "Unreadable");
  const page = await open();
  await visit(page, broker, entity(subscription, "dead-letters"));
  await page.locator(".panel").last().getByRole("button", { name: "1", exact: true }).click();
  await page.getByRole("dialog").getByRole("link", { name: "Edit and redrive" }).click();
  await page.getByText(`The message goes to ${subscription} in place of dead letter 1`, { exact: false }).waitFor();
  const typed = page.getByLabel("Body");
  assert.equal(await typed.inputValue(), "00 ff 10");
  await page.getByLabel("Written as").selectOption("Base 64");
  assert.equal(await typed.inputValue(), "AP8Q");
  await page.getByLabel("Written as").selectOption("Text");
  await page.getByText("The body is not text.").waitFor();
  await page.getByLabel("Written as").selectOption("Hexadecimal");
  await typed.fill("00 f");
  await page.locator("main").getByRole("button", { name: "Redrive" }).click();
  await page.getByText("The body is not in hexadecimal", { exact: false }).waitFor();
  await typed.fill("00 ff 20");
  await page.locator("main").getByRole("button", { name: "Redrive" }).click();
  await page.getByText("The message is put back, and dead letter 1 is removed.").waitFor();
  const receiver = client.createReceiver(subscription);
  const [message] = await receiver.peekMessages(10);
  assert.deepEqual(Buffer.from(message.body), Buffer.from([0x00, 0xff, 0x20]));
  assert.deepEqual(message.applicationProperties, { state: "paid" });
  await receiver.close();
  const dead = client.createReceiver(subscription, { subQueueType: "deadLetter" });
  assert.deepEqual(await dead.peekMessages(10), []);
  await dead.close();
});

test("a body is taken from a file", async ({ broker, client, open }) => {
  const page = await open();
  await visit(page, broker, "send");
  await page.getByLabel("Queue or topic").fill("orders");
  const file = { name: "body", mimeType: "application/octet-stream", buffer: Buffer.from([0xff, 0xfe, 0x00]) };
  await page.getByLabel("Taken from a file").setInputFiles(file);
  await page.waitForFunction(() => document.querySelector("textarea").value === "ff fe 00");
  await page.locator("main").getByRole("button", { name: "Send" }).click();
  await page.getByText("The message is stored as number 1.").waitFor();
  const receiver = client.createReceiver("orders");
  const [message] = await receiver.peekMessages(1);
  assert.deepEqual(Buffer.from(message.body), file.buffer);
  await receiver.close();
});

test("a slow redrive shows its progress and is cancelled", async ({ broker, client, open }) => {
  const messages = Array.from({ length: 8 }, (_, n) => ({ body: `${n}` }));
  await send(client, "orders", ...messages);
  await deadLetter(client, "orders", 8, "Refused");
  const page = await open();
  await visit(page, broker, entity("orders", "dead-letters"));
  await page.getByLabel("Messages a second").fill("1");
  await page.getByRole("button", { name: "Redrive", exact: true }).click();
  await page.waitForFunction(() => document.querySelector("progress")?.value >= 1);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByText("The redrive is cancelled.").waitFor();
  const dead = client.createReceiver("orders", { subQueueType: "deadLetter" });
  assert.notEqual((await dead.peekMessages(10)).length, 0);
  await dead.close();
});

test("all messages of a part are deleted", async ({ broker, client, open }) => {
  await send(client, "orders", { body: "a" }, { body: "b" });
  const page = await open();
  await visit(page, broker, entity("orders", "messages"));
  await page.getByRole("button", { name: "Delete all" }).click();
  await page.getByText("This deletes 2 active messages of orders.").waitFor();
  await agree(page, "Delete");
  await page.getByText("2 messages deleted, 0 stayed.").waitFor();
  await page.getByText("There are no active messages.").waitFor();
});

test("messages that fit a filter are counted before they are deleted", async ({ broker, client, open }) => {
  const message = (color) => ({ body: color, applicationProperties: { color } });
  await send(client, "orders", message("red"), message("red"), message("blue"));
  const page = await open();
  await visit(page, broker, entity("orders", "messages", `filter=${encodeURIComponent("color = 'red'")}`));
  await page.getByRole("button", { name: "Delete all" }).click();
  await page.getByText("This deletes 2 active messages that fit the filter of orders.").waitFor();
  await agree(page, "Delete");
  await page.getByText("2 messages deleted, 0 stayed.").waitFor();
  const receiver = client.createReceiver("orders");
  assert.deepEqual((await receiver.peekMessages(10)).map((one) => one.body), ["blue"]);
  await receiver.close();
});

test("a topic is deleted with the messages of its subscriptions, which the question counts", async ({ broker, client, open }) => {
  const page = await open();
  await send(client, "events", { body: "a" }, { body: "b" });
  await deadLetter(client, "events/Subscriptions/all", 1, "Refused");
  await visit(page, broker, entity("events"));
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByText("The topic events, its 2 subscriptions and everything in them are deleted: 1 active message, 1 dead letter.").waitFor();
  await agree(page, "Delete");
  await page.waitForURL(/#\/entities$/);
});

test("the question counts the dead letters that it deletes, not those that were looked at", async ({ broker, client, open }) => {
  await send(client, "orders", { body: "a" }, { body: "b" });
  await deadLetter(client, "orders", 2, "Refused");
  const page = await open();
  const group = { reason: "Refused", description: "", count: 1, first: 1, last: 1 };
  const reasons = { reasons: [group], others: 1, examined: 1, complete: false };
  await page.route("**/entities/orders/reasons", (route) => route.fulfill({ json: reasons }));
  await visit(page, broker, entity("orders", "dead-letters"));
  await page.getByText("1 more dead letter of further reasons.").waitFor();
  await page.getByRole("row", { name: /Refused/ }).first().getByRole("button", { name: "Delete" }).click();
  await page.getByText("This deletes 2 dead letters of orders.").waitFor();
  await agree(page, "Delete");
  await page.getByText("2 dead letters deleted.").waitFor();
});

test("a redrive is cancelled while its messages are counted, and from a page that was left", async ({ broker, client, open }) => {
  const messages = Array.from({ length: 8 }, (_, n) => ({ body: `${n}` }));
  await send(client, "orders", ...messages);
  await deadLetter(client, "orders", 8, "Refused");
  const page = await open();
  const place = entity("orders", "dead-letters");
  // The answer to the dry run never comes.
  await page.route("**/entities/orders/redrive", () => {}, { times: 1 });
  await visit(page, broker, place);
  const start = page.getByRole("button", { name: "Redrive", exact: true });
  const cancel = page.getByRole("button", { name: "Cancel" });
  await start.click();
  await page.getByRole("progressbar").waitFor();
  assert.equal(await start.count(), 0);
  await cancel.click();
  await page.getByText("The redrive is cancelled.").waitFor();
  await page.getByLabel("Messages a second").fill("1");
  await start.click();
  await cancel.waitFor();
  await visit(page, broker, entity("orders", "settings"));
  await page.getByText("max-delivery-count").first().waitFor();
  await visit(page, broker, place);
  assert.equal(await start.count(), 0);
  await cancel.click();
  await start.waitFor();
  const dead = client.createReceiver("orders", { subQueueType: "deadLetter" });
  assert.notEqual((await dead.peekMessages(10)).length, 0);
  await dead.close();
});

test("a rule is tested while it is typed, and the place of an error is marked", async ({ broker, open }) => {
  const page = await open();
  await visit(page, broker, "rules");
  await page.locator(".result").getByText("match", { exact: true }).waitFor();
  await page.getByRole("row", { name: /priority/ }).waitFor();
  await page.getByLabel("Filter in SQL").fill("color = 'blue'");
  await page.locator(".result").getByText("no match").waitFor();
  await page.getByLabel("Filter in SQL").fill("color = = 'red'");
  await page.locator("mark").waitFor();
  assert.equal(await page.locator("mark").textContent(), "=");
});

test("the namespace is exported, downloaded, copied, planned and applied", async ({ broker, open }) => {
  const page = await open();
  await visit(page, broker, "settings");
  await page.getByRole("button", { name: "Export" }).click();
  const file = page.getByLabel("The file in JSON");
  await page.waitForFunction(() => document.querySelector("textarea").value !== "");
  await page.getByRole("button", { name: "Show the plan" }).click();
  await page.getByText("Nothing would change.").waitFor();
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download" }).click();
  assert.equal(readFileSync(await (await download).path(), "utf8"), await file.inputValue());
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy", exact: true }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await file.inputValue());
  const namespace = JSON.parse(await file.inputValue());
  namespace.queues.push({ name: "planned" });
  await file.fill(JSON.stringify(namespace));
  await page.getByRole("button", { name: "Show the plan" }).click();
  await page.getByText("queue planned").waitFor();
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("1 change, of which 0 deletions.").waitFor();
  await agree(page, "Apply");
  await page.getByRole("status").getByText("1 change applied.").waitFor();
  await visit(page, broker, "entities?search=planned");
  await page.getByRole("link", { name: "planned" }).waitFor();
});

quietTest("a file that is too large to be shown is chosen, planned and applied", async ({ broker, open }) => {
  const queues = Array.from({ length: 4_000 }, (_, n) => ({ name: `queue-${n}-${"x".repeat(60)}` }));
  const buffer = Buffer.from(JSON.stringify({ queues }));
  const page = await open();
  await visit(page, broker, "settings");
  await page.getByLabel("A file of this computer").setInputFiles({ name: "a.json", mimeType: "application/json", buffer });
  await page.getByText("too many to be edited here", { exact: false }).waitFor();
  assert.equal(await page.locator("textarea").count(), 0);
  await page.getByLabel("Delete what the file does not have").check();
  await page.getByRole("button", { name: "Show the plan" }).click();
  await page.getByText("queue orders").waitFor();
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText(/of which [1-9][0-9]* deletions/).waitFor();
  await agree(page, "Apply");
  await page.getByRole("status").getByText("changes applied.", { exact: false }).waitFor();
  const { queues: left } = await api(broker, "GET", "entities");
  assert.equal(left.length, 4_000);
});

test("a scheduled message is cancelled, and one message is redriven", async ({ broker, client, open }) => {
  const sender = client.createSender("orders");
  const later = new Date(Date.now() + 3_600_000);
  const [number] = await sender.scheduleMessages({ body: "later" }, later);
  await sender.close();
  const page = await open();
  await visit(page, broker, entity("orders", "messages", "part=scheduled"));
  await page.getByRole("button", { name: String(number) }).click();
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await agree(page, "Keep it", `Cancel message ${number}`);
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await agree(page, "Cancel the message", `Cancel message ${number}`);
  await page.getByText(`Message ${number} is cancelled.`).waitFor();
  await page.getByText("There are no scheduled messages.").waitFor();
  await send(client, "orders", { body: "again" });
  await deadLetter(client, "orders", 1, "Refused");
  await visit(page, broker, entity("orders", "messages", "part=dead-letter"));
  await page.getByRole("row", { name: /again/ }).getByRole("button").first().click();
  await page.getByRole("button", { name: "Redrive" }).click();
  await agree(page, "Redrive", /^Redrive message/);
  await page.getByText(/Message \d+ is redriven/).waitFor();
  const receiver = client.createReceiver("orders");
  assert.equal((await receive(receiver, 1))[0].body, "again");
  await receiver.close();
});

test("a rule is tested with a message of a queue", async ({ broker, client, open }) => {
  await send(client, "orders", { body: "a", subject: "red", applicationProperties: { share: 1.5, n: 3 } });
  const page = await open();
  await visit(page, broker, entity("orders", "messages"));
  await page.getByRole("row", { name: /red/ }).getByRole("button").first().click();
  await page.getByRole("link", { name: "Test a rule" }).click();
  await page.getByLabel("Filter in SQL").fill("sys.Label = 'red' AND share = 1.5 AND n = 3");
  await page.locator(".result").getByText("match", { exact: true }).waitFor();
  await page.getByLabel("Action in SQL").fill("SET share = = 2");
  await page.locator("mark").waitFor();
  assert.equal(await page.locator("mark").textContent(), "=");
});

quietTest("a connection is shown with its links and closed, and its client connects again", async ({ broker, client, open }) => {
  const sender = client.createSender("orders");
  await sender.sendMessages({ body: "a" });
  const page = await open();
  await visit(page, broker, "connections");
  const row = page.getByRole("row", { name: /orders/ });
  await row.getByRole("button").first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("row", { name: /orders sender/ }).waitFor();
  await dialog.getByRole("row", { name: /\$cbs receiver/ }).waitFor();
  await dialog.getByRole("button", { name: "Close", exact: true }).click();
  const number = await row.getByRole("button").first().textContent();
  await row.getByRole("button", { name: "Close" }).click();
  await page.getByText("gets amqp:connection:forced", { exact: false }).waitFor();
  await agree(page, "Close the connection");
  await page.getByText(`Connection ${number} is being closed.`).waitFor();
  await page.getByText("No client is connected by AMQP.").waitFor();
  await sender.sendMessages({ body: "b" });
  await row.waitFor();
  assert.notEqual(await row.getByRole("button").first().textContent(), number);
  await sender.close();
});

test("connections come by page", async ({ broker, open }) => {
  // Beside that of the traffic, which is the first.
  const clients = Array.from({ length: 51 }, () => new ServiceBusClient(broker.connectionString));
  for (const client of clients) await client.createSender("orders").createMessageBatch();
  const page = await open();
  await visit(page, broker, "connections");
  await page.getByRole("heading", { name: "52 AMQP connections" }).waitFor();
  const rows = (count) => page.waitForFunction((count) => document.querySelectorAll("tbody tr").length === count, count);
  await rows(50);
  const first = await page.locator("tbody tr").first().getByRole("button").first().textContent();
  assert.ok(await page.getByRole("button", { name: "First" }).isDisabled());
  await page.getByRole("button", { name: "Next" }).click();
  await rows(2);
  assert.ok(await page.getByRole("button", { name: "Next" }).isDisabled());
  await page.getByRole("button", { name: "First" }).click();
  await rows(50);
  assert.equal(await page.locator("tbody tr").first().getByRole("button").first().textContent(), first);
  for (const client of clients) await client.close();
});

quietTest("the clock is advanced, frozen and runs on", async ({ broker, open }) => {
  const page = await open();
  await visit(page, broker, "clock");
  await page.getByLabel("Duration in ISO 8601").fill("PT2H");
  await page.getByRole("button", { name: "Advance" }).click();
  await page.getByText("PT2H pass at once in all namespaces", { exact: false }).waitFor();
  await agree(page, "Advance");
  await page.getByText("PT2H", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Freeze" }).click();
  await page.getByText("frozen").waitFor();
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText("runs").waitFor();
});

test("the keys lead to pages, to the search, and to their list", async ({ broker, open }) => {
  const page = await open();
  await page.getByText("Longest backlogs").waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Search").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  // The address changes before the page does, and "/" means the search of the page that is shown.
  await page.getByRole("heading", { name: "Topology", exact: true }).waitFor();
  await page.locator(".box").nth(3).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("bill");
  await page.waitForFunction(() => document.querySelectorAll(".box").length < 4);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("navigation", { name: "Parts of the entity" }).waitFor();
});
