// "Copy as code" of the web console in C#, Java and Go: it compiles, and sends the message that was shown.
"use strict";

const assert = require("node:assert/strict");
const { BODY, CLIPBOARD, MEMBERS, OTHERS, PROPERTIES, arrived, copy, post } = require("../console/copying.js");
const { api, send, test } = require("../console/support.js");
const programs = require("./programs.js");

/** The types that an SDK cannot send: they go as texts. */
const AS_TEXT = { "C#": ["symbol"], Java: [], Go: ["char", "duration", "offset", "uri"] };

/** A text of JSON with all properties but those named: in a text numbers keep their digits. */
function without(names) {
  const others = Object.entries(OTHERS).filter(([name]) => !names.includes(name));
  const pairs = others.map(([name, value]) => `, ${JSON.stringify(name)}: ${JSON.stringify(value)}`);
  const all = PROPERTIES.trimEnd().slice(0, -1) + pairs.join("");
  return `${names.includes("symbol") ? all.replace(/, "symbol": \{[^}]*\}/, "") : all}}`;
}

/** Only those named. */
function only(names) {
  const all = { symbol: { type: "symbol", value: "s" }, ...OTHERS };
  return Object.fromEntries(names.map((name) => [name, all[name]]));
}

/** What the SDKs of Java and of C# set by themselves: the times if there is a time to live. */
const BY_SDK = /"(absolute-expiry-time|creation-time|user-id)":"[^"]*",?/g;

for (const [language, program] of Object.entries(programs)) {
  test(`the copied ${language} compiles and sends the message that is shown`, async ({ broker, client, open }) => {
    const asText = only(AS_TEXT[language]);
    await post(broker, "orders", { ...MEMBERS, body: BODY }, without(AS_TEXT[language]));
    await send(client, "orders", { body: Buffer.from([0xff, 0, 0x22, 0x5c, 0x80]), messageId: "bytes" });
    await send(client, "orders", { body: Buffer.alloc(0), messageId: "empty" });
    await send(client, "orders", { body: "mortal", messageId: "mortal", timeToLive: 93_784_500 });
    await post(broker, "orders", { "message-id": "texts", body: "x".repeat(70_000) }, JSON.stringify(asText));
    await post(broker, "events", { "message-id": "topic", body: "of a topic" }, '{"n": 5}');
    const page = await open(CLIPBOARD);
    const codes = [];
    for (const number of [1, 2, 3, 4, 5]) codes.push(...(await copy(page, broker, "orders", number, language)));
    const path = "events/Subscriptions/all";
    codes.push(...(await copy(page, broker, path, 1, language)));
    program(codes, broker.connectionString);
    const sent = async (path, number) => (await arrived(broker, path, number)).replaceAll(BY_SDK, "").replaceAll(",}", "}");
    for (const number of [1, 2, 3, 4]) {
      assert.equal(await sent("orders", number + 5), await sent("orders", number), codes[number - 1]);
    }
    const { messages: [message] } = await api(broker, "GET", "entities/orders/messages?from=10");
    const texts = Object.entries(asText).map(([name, { value }]) => [name, value]);
    assert.deepEqual(Object.entries(message.properties ?? {}), texts, codes[4]);
    assert.equal(message.body.length, 70_000);
    assert.equal(await sent(path, 2), await sent(path, 1), codes[5]);
  });
}
