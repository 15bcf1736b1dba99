// "Copy as code": what is copied in Python and JavaScript sends the message that is shown, and what is copied in C#,
// Java and Go is the text in the folder `copied`. The suite `copied-code` compiles and runs these three.
"use strict";

const assert = require("node:assert/strict");
const { spawnSync } = require("node:child_process");
const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const { BODY, CLIPBOARD, MEMBERS, OTHERS, PROPERTIES, arrived, copy, post } = require("./copying.js");
const { agree, deadLetter, entity, send, test, visit } = require("./support.js");

/** Runs copied code with the client that it expects. */
const RUN = {
  async JavaScript(code, { client }) {
    const AsyncFunction = (async () => {}).constructor;
    await new AsyncFunction("client", "require", code)(client, require);
  },
  async Python(code, { broker }) {
    const script = [
      "from azure.servicebus import ServiceBusClient",
      `client = ServiceBusClient.from_connection_string(${JSON.stringify(broker.connectionString)})`,
      code,
      "client.close()",
    ];
    const ran = spawnSync(process.env.RAILBUS_PYTHON, ["-"], { input: script.join("\n"), encoding: "utf8" });
    assert.equal(ran.status, 0, `${ran.stderr}\n${code}`);
  },
};

for (const language of Object.keys(RUN)) {
  test(`the copied ${language} sends the message that is shown`, async ({ broker, client, open }) => {
    await post(broker, "orders", { ...MEMBERS, body: BODY }, PROPERTIES);
    await send(client, "orders", { body: Buffer.from([0xff, 0, 0x22, 0x5c, 0x80]), messageId: "bytes" });
    await send(client, "orders", { body: Buffer.alloc(0) });
    const page = await open(CLIPBOARD);
    for (const number of [1, 2, 3]) {
      const [code] = await copy(page, broker, "orders", number, language);
      await RUN[language](code, { broker, client });
      assert.equal(await arrived(broker, "orders", number + 3), await arrived(broker, "orders", number), code);
    }
  });

  test(`the copied ${language} of a subscription's message sends to the topic`, async ({ broker, client, open }) => {
    await post(broker, "events", { body: "of a topic" }, '{"n": 5}');
    const page = await open(CLIPBOARD);
    const [code] = await copy(page, broker, "events/Subscriptions/all", 1, language);
    await RUN[language](code, { broker, client });
    const path = "events/Subscriptions/all";
    assert.equal(await arrived(broker, path, 2), await arrived(broker, path, 1));
  });
}

test("what is copied in the other languages is as expected", async ({ broker, open }) => {
  const others = JSON.stringify(OTHERS).slice(1);
  const properties = `${PROPERTIES.trimEnd().slice(0, -1)}, ${others}`;
  await post(broker, "events", { ...MEMBERS, body: BODY }, properties);
  const page = await open(CLIPBOARD);
  const copied = await copy(page, broker, "events/Subscriptions/all", 1, "C#", "Java", "Go", "Python", "JavaScript");
  for (const [at, name] of ["message.cs", "message.java", "message.go"].entries()) {
    assert.equal(copied[at], readFileSync(join(__dirname, "copied", name), "utf8").trimEnd(), name);
  }
  const note = (comment, name, type) => `${comment} "${name}" is a ${type}, which this SDK does not send: here it is a text.`;
  for (const [at, comment, names] of [[2, "//", "char"], [3, "#", "char"], [4, "//", ""]]) {
    if (names) assert.ok(copied[at].includes(note(comment, "char", "char")), copied[at]);
    assert.ok(copied[at].includes(note(comment, "offset", "datetime-offset")), copied[at]);
  }
});

test("a time to live is copied", async ({ broker, client, open }) => {
  await send(client, "orders", { body: "mortal", timeToLive: 93_784_500 });
  const page = await open(CLIPBOARD);
  const copied = await copy(page, broker, "orders", 1, "JavaScript", "Python", "C#", "Java", "Go");
  await RUN.JavaScript(copied[0], { client });
  await RUN.Python(copied[1], { broker });
  const receiver = client.createReceiver("orders");
  const peeked = await receiver.peekMessages(10);
  await receiver.close();
  // Python's SDK sends whole seconds.
  assert.deepEqual(peeked.map((one) => one.timeToLive), [93_784_500, 93_784_500, 93_784_000]);
  assert.ok(copied[2].includes("message.TimeToLive = TimeSpan.FromMilliseconds(93784500);"), copied[2]);
  assert.ok(copied[3].includes("message.setTimeToLive(java.time.Duration.ofMillis(93784500L));"), copied[3]);
  assert.ok(copied[4].includes("TimeToLive: to.Ptr(93784500*time.Millisecond),"), copied[4]);
});

test("a message whose body is shown in part is not copied", async ({ broker, client, open }) => {
  await send(client, "orders", { body: Buffer.alloc(257 << 10, "y") }, { body: Buffer.alloc(2, "y") });
  const page = await open();
  for (const [number, count] of [[1, 0], [2, 1]]) {
    await visit(page, broker, entity("orders", "messages"));
    await page.getByRole("button", { name: String(number), exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("link", { name: "Why" }).waitFor();
    assert.equal(await dialog.getByRole("button", { name: "Copy as code" }).count(), count);
    await dialog.getByRole("button", { name: "Close" }).click();
  }
}, { options: ["--max-message-size", "1MiB"] });

test("a message that is sent again keeps the types of its properties", async ({ broker, open }) => {
  await post(broker, "orders", { ...MEMBERS, body: BODY }, PROPERTIES);
  const page = await open();
  await visit(page, broker, entity("orders", "messages"));
  await page.getByRole("button", { name: "1", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Send again" }).click();
  await page.getByText("A copy of message 1 is sent to orders.").waitFor();
  assert.equal(await arrived(broker, "orders", 2), await arrived(broker, "orders", 1));
  await page.getByRole("button", { name: "1", exact: true }).click();
  await page.getByRole("dialog").getByRole("link", { name: "Edit and send" }).click();
  await page.locator("main").getByRole("button", { name: "Send" }).click();
  await page.getByText("The message is stored as number 3.").waitFor();
  assert.equal(await arrived(broker, "orders", 3), await arrived(broker, "orders", 1));
});

/** An AMQP message with all that senders of AMQP may set. */
const ANNOTATED = {
  bodyType: "value",
  body: "a text as JMS sends it",
  header: { durable: true, priority: 9, timeToLive: 3_600_000 },
  messageAnnotations: { "x-opt-color": "red" },
  properties: { messageId: "m", contentEncoding: "gzip", userId: "me" },
  applicationProperties: { n: 5 },
  footer: { sum: "abc" },
};

/** What an SDK sees of a message that matters to who sent it. */
function kept(message) {
  const { bodyType, header, messageAnnotations, properties } = message._rawAmqpMessage;
  return {
    body: message.body,
    bodyType,
    priority: header.priority,
    durable: header.durable,
    color: messageAnnotations["x-opt-color"],
    encoding: properties.contentEncoding,
    userId: String(properties.userId),
    timeToLive: message.timeToLive,
    applicationProperties: message.applicationProperties,
  };
}

test("all sections of a message are shown, and a copy keeps what it can", async ({ broker, client, open }) => {
  await send(client, "orders", ANNOTATED);
  const page = await open();
  await visit(page, broker, entity("orders", "messages"));
  const dialog = page.getByRole("dialog");
  const message = page.getByRole("button", { name: "1", exact: true });
  await message.click();
  for (const [name, value] of [
    ["durable", "true"],
    ["priority", "9"],
    ["time-to-live", "PT1H"],
    ["content-encoding", "gzip"],
    ["body-type", "string"],
    ["x-opt-color", "red"],
    ["sum", "abc"],
  ]) {
    await dialog.locator(".facts div", { has: page.getByText(name, { exact: true }) }).getByText(value, { exact: true }).waitFor();
  }
  await dialog.getByText("A copy of the message goes without the footer.").waitFor();
  await dialog.getByRole("button", { name: "Send again" }).click();
  await page.getByText("A copy of message 1 is sent to orders.").waitFor();
  await message.click();
  await dialog.getByRole("link", { name: "Edit and send" }).click();
  await page.getByText("It is sent as an AMQP value of the type string, as it was.").waitFor();
  await page.getByLabel("Body").fill("edited");
  await page.locator("main").getByRole("button", { name: "Send" }).click();
  await page.getByText("The message is stored as number 3.").waitFor();
  const receiver = client.createReceiver("orders");
  const [sent, again, edited] = (await receiver.peekMessages(3)).map(kept);
  await receiver.close();
  assert.equal(sent.bodyType, "value");
  assert.equal(sent.priority, 9);
  assert.deepEqual(again, sent);
  assert.deepEqual(edited, { ...sent, body: "edited" });
});

test("a body that cannot be written is shown and not copied, and its dead letter is redriven as it is", async ({ broker, client, open }) => {
  const body = { account: 7, parts: ["a"] };
  await send(client, "orders", { bodyType: "value", body });
  await deadLetter(client, "orders", 1, "Refused");
  const page = await open();
  await visit(page, broker, entity("orders", "dead-letters"));
  await page.locator(".panel").last().getByRole("button", { name: "1", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("The body is an AMQP value of the type map, which cannot be written here", { exact: false }).waitFor();
  await dialog.getByText('"account"').waitFor();
  for (const name of ["Copy as code", "Send again", "Edit and send", "Edit and redrive", "Test a rule"]) {
    assert.equal(await dialog.getByText(name, { exact: true }).count(), 0, name);
  }
  await dialog.getByRole("button", { name: "Redrive" }).click();
  await agree(page, "Redrive", /^Redrive message/);
  await page.getByText(/Message \d+ is redriven/).waitFor();
  const receiver = client.createReceiver("orders");
  const [message] = await receiver.peekMessages(1);
  await receiver.close();
  assert.equal(message._rawAmqpMessage.bodyType, "value");
  assert.deepEqual(message.body, body);
});
