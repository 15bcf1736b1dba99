// What a message carries comes back as it was sent.
"use strict";

const assert = require("node:assert/strict");
const { message, receiveOne, test } = require("./support.js");

test("application properties of every type come back equal", "plain", async (queue) => {
  const applicationProperties = {
    null: null,
    true: true,
    false: false,
    zero: 0,
    uint: 2 ** 32 - 2,
    ulong: Number.MAX_SAFE_INTEGER,
    int: -(2 ** 31) + 1,
    long: Number.MIN_SAFE_INTEGER,
    double: 1.0000000000000002,
    negative: -0.1,
    string: "naïve ☃ 𝄞",
    empty: "",
    long_string: "s".repeat(300),
    timestamp: new Date("2024-02-29T12:30:15.250Z"),
  };
  await queue.send(message("body", { applicationProperties }));
  const received = await receiveOne(queue.receiver({ receiveMode: "receiveAndDelete", skipConvertingDate: true }));
  assert.deepEqual(received.applicationProperties, applicationProperties);
});

test("message properties come back equal", "plain", async (queue) => {
  const sent = message("text", {
    correlationId: "the request",
    subject: "orders",
    contentType: "application/json; charset=utf-8",
    to: "somewhere",
    replyTo: "the reply queue",
    replyToSessionId: "reply session",
    sessionId: "session",
    partitionKey: "session",
  });
  await queue.send(sent);
  const [received] = await queue.take();
  for (const [name, value] of Object.entries(sent)) assert.deepEqual(received[name], value, name);
});

// The SDK sends a buffer as a uuid, which has sixteen bytes.
for (const [kind, id] of [["number", 42], ["uuid", Buffer.from("00112233445566778899aabbccddeeff", "hex")]]) {
  test(`a ${kind} as message id and correlation id keeps its type`, "plain", async (queue) => {
    await queue.send({ body: "body", messageId: id, correlationId: id });
    const [received] = await queue.take();
    assert.deepEqual(received.messageId, id);
    assert.deepEqual(received.correlationId, id);
  });
}

for (const [bodyType, body] of [
  ["value", { text: "a", number: 1.5, list: ["b", true] }],
  ["sequence", [["one", "two"], ["three"]]],
  ["data", Buffer.from([0, 1, 255])],
]) {
  test(`a ${bodyType} body keeps its kind`, "plain", async (queue) => {
    await queue.send({ bodyType, body });
    const [received] = await queue.take(1, { skipParsingBodyAsJson: true });
    assert.equal(received._rawAmqpMessage.bodyType, bodyType);
    assert.deepEqual(received.body, body);
  });
}
