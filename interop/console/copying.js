// What tests of copied code share: a message with all that code can send, and the button that copies it.
"use strict";

const assert = require("node:assert/strict");
const { entity, visit } = require("./support.js");

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

module.exports = { BODY, CLIPBOARD, MEMBERS, OTHERS, PROPERTIES, arrived, copy, post };
