// "Copy as code": what is copied in Python and JavaScript sends the message that is shown, and what is copied in C#,
// Java and Go is the text in the folder `copied`.
"use strict";

const assert = require("node:assert/strict");
const { spawnSync } = require("node:child_process");
const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const { agree, deadLetter, entity, send, test, visit } = require("./support.js");

const MEMBERS = {
  "message-id": 'id "1"\\',
  "correlation-id": "the request",
  subject: "orders\u2028and\u202e more",
  "content-type": "application/json; charset=utf-8",
  to: "somewhere",
  "reply-to": "answers",
  "session-id": "customer",
  "reply-to-session-id": "reply session",
  "partition-key": "customer",
};

/** One value of each type that the SDKs of Python and JavaScript send. Written as JSON, where 5.0 is a double. */
const PROPERTIES = `{
  "true": true, "null": null, "text": "na\u00efve \u2603 \\"'\\n\\\\u0041", "empty": "", "__proto__": "a name",
  "long": 5, "negative": -5000000000, "large": 9007199254740993, "lowest": -9223372036854775808,
  "double": 1.5, "whole": 5.0, "huge": 1e300, "infinite": {"type": "double", "value": "-Infinity"},
  "ubyte": {"type": "ubyte", "value": 255}, "ushort": {"type": "ushort", "value": 65535},
  "uint": {"type": "uint", "value": 4294967295}, "ulong": {"type": "ulong", "value": 18446744073709551615},
  "byte": {"type": "byte", "value": -128}, "short": {"type": "short", "value": -32768},
  "int": {"type": "int", "value": -2147483648}, "float": {"type": "float", "value": 0.5},
  "timestamp": {"type": "timestamp", "value": "2024-02-29T12:30:15.25Z"},
  "uuid": {"type": "uuid", "value": "00010203-0405-0607-0809-0a0b0c0d0e0f"},
  "binary": {"type": "binary", "value": "AP8i"}, "symbol": {"type": "symbol", "value": "s"}
}`;

/** Those that some SDKs have no type for. */
const OTHERS = {
  char: { type: "char", value: "\u00e4" },
  duration: { type: "duration", value: "PT1.5S" },
  offset: { type: "datetime-offset", value: "2024-02-29T12:30:15Z" },
  uri: { type: "uri", value: "https://example.org/a?b=c" },
};

const BODY = '{"text": "na\u00efve \u2603 \ud834\udd1e \\"\\\\", "end": "\u0000\u0085\u2028\u202e\ufeff"}\n';

/** Members that the broker or an SDK gives to a message. */
const GIVEN =
  /"(sequence-number|enqueued-sequence-number|enqueued-time|delivery-count|state|durable|priority|first-acquirer)":("[^"]*"|\d+|true|false),?/g;

/** A message as text, in which numbers keep their types, without what the broker gives it. */
async function arrived(broker, path, number) {
  const place = `${broker.url}$railbus/entities/${path}/messages?from=${number}&count=1`;
  const text = await (await fetch(place)).text();
  assert.ok(text.includes(`"sequence-number":${number},`) || text.includes(`"sequence-number":${number}}`), text);
  return text.replace(/,?"next":(\d+|null)/, "").replaceAll(GIVEN, "");
}

/** Sends a message whose properties are a text of JSON. */
async function post(broker, path, message, properties) {
  const body = JSON.stringify({ ...message, properties: 0 }).replace('"properties":0', () => `"properties":${properties}`);
  const answer = await fetch(`${broker.url}$railbus/entities/${path}/messages`, { method: "POST", body });
  assert.equal(answer.status, 201, await answer.text());
}

/** What the button puts onto the clipboard, in each of `languages`. */
async function copy(page, broker, path, number, ...languages) {
  await visit(page, broker, entity(path, "messages"));
  await page.getByRole("button", { name: String(number), exact: true }).click();
  const dialog = page.getByRole("dialog");
  const copied = [];
  for (const language of languages) {
    await dialog.getByLabel("Language").selectOption(language);
    await dialog.getByRole("button", { name: "Copy as code" }).click();
    await dialog.getByRole("button", { name: "Copied" }).waitFor();
    copied.push(await page.evaluate(() => navigator.clipboard.readText()));
    await dialog.getByRole("button", { name: "Copy as code" }).waitFor();
  }
  await dialog.getByRole("button", { name: "Close" }).click();
  return copied;
}

const CLIPBOARD = { permissions: ["clipboard-read", "clipboard-write"] };

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
