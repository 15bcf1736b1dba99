// Text of messages is never markup, and large bodies are shown in part.
"use strict";

const assert = require("node:assert/strict");
const { api, entity, receive, send, test, visit } = require("./support.js");

const MARKUP = `<img src=x onerror=alert(1)><script>alert(2)</script>"'\u0000\u202e{{7*7}}`;

test("markup in bodies, ids, names and values of properties is shown as text", async ({ broker, client, open }) => {
  const message = {
    body: MARKUP,
    messageId: MARKUP.slice(0, 100),
    subject: MARKUP,
    contentType: "text/html",
    applicationProperties: { [MARKUP]: MARKUP, __proto__: null, constructor: "<b>x</b>" },
  };
  await send(client, "hostile", message);
  await send(client, "hostile", { body: { [MARKUP]: MARKUP, list: [MARKUP] } });
  const receiver = client.createReceiver("hostile");
  const [first] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 10_000 });
  await receiver.deadLetterMessage(first, { deadLetterReason: MARKUP, deadLetterErrorDescription: MARKUP });
  await receiver.close();
  const page = await open();
  await visit(page, broker, entity("hostile", "dead-letters"));
  await page.getByText("<img src=x", { exact: false }).first().waitFor();
  await page.getByRole("button", { name: "1", exact: true }).click();
  await page.getByRole("dialog").getByText("<script>alert(2)</script>", { exact: false }).first().waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  await visit(page, broker, entity("hostile", "messages"));
  await page.getByRole("button", { name: "2", exact: true }).click();
  await page.getByRole("dialog").locator(".key").first().waitFor();
  await visit(page, broker, `entity/${encodeURIComponent(MARKUP)}`);
  await page.getByText("There is no entity <img", { exact: false }).waitFor();
  assert.equal(await page.locator("main img, main script").count(), 0);
});

test("markup in names of fault rules and snapshots and in reasons is shown as text", async ({ broker, client, open }) => {
  const name = MARKUP.replaceAll("\u0000", "");
  await api(broker, "POST", "namespaces/default/faults", { name, match: { entity: name }, effect: "lose-lock" });
  await send(client, "hostile", { messageId: MARKUP.slice(0, 100), sessionId: MARKUP.slice(0, 100), body: "a" });
  const receiver = client.createReceiver("hostile");
  const [only] = await receive(receiver, 1);
  await receiver.deadLetterMessage(only, { deadLetterReason: MARKUP });
  await receiver.close();
  const page = await open();
  await visit(page, broker, "faults");
  await page.getByRole("cell", { name: "<img src=x onerror=alert(1)>", exact: false }).first().waitFor();
  await page.getByRole("row", { name: /<img/ }).getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog").getByText("The rule <img src=x", { exact: false }).waitFor();
  await page.keyboard.press("Escape");
  await visit(page, broker, "lineage");
  await page.getByText("What has happened").waitFor();
  await page.getByText("it became a dead-letter message: <img", { exact: false }).first().waitFor();
  await page.getByLabel("Message id").fill(MARKUP.slice(0, 58));
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByText("The record has nothing of it.").waitFor();
  await visit(page, broker, entity("hostile", "why", "sequence=1"));
  await page.getByText("reason: <img src=x", { exact: false }).waitFor();
  await visit(page, broker, "snapshots");
  await page.getByLabel("Name of the snapshot").fill("<b onclick=alert(3)>x</b>");
  await page.getByRole("button", { name: "Take a snapshot" }).click();
  await page.getByText("<b onclick=alert(3)>", { exact: false }).first().waitFor();
  await visit(page, broker, `@${encodeURIComponent(MARKUP)}/entities`);
  await page.getByRole("alert").waitFor();
  assert.equal(await page.locator("main img, main script, main b, aside img").count(), 0);
});

test("bodies of megabytes are shown in part", async ({ broker, client, open }) => {
  await send(client, "hostile", { body: "x".repeat(900 * 1024) });
  await send(client, "hostile", { body: Buffer.alloc((100 << 20) - 1024, "y") });
  const page = await open();
  let received = 0;
  page.on("response", async (response) => {
    if (response.url().includes("/messages")) received += (await response.body().catch(() => "")).length;
  });
  await visit(page, broker, entity("hostile", "messages"));
  for (const [number, size] of [[1, "900.0 KiB"], [2, "100.0 MiB"]]) {
    await page.getByText(size, { exact: true }).first().waitFor();
    await page.getByRole("button", { name: String(number), exact: true }).click();
    await page.getByText(`the start of ${size}`).waitFor();
    const shown = await page.locator(".bodytext").textContent();
    assert.ok(shown.length <= 1024, `${shown.length} characters`);
    await page.getByRole("button", { name: "Close" }).click();
  }
  assert.ok(received < 1 << 20, `${received} bytes for the browser`);
}, { options: ["--max-message-size", "100MiB"] });
