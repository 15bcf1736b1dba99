// A message as code that sends it again, for each of the five SDKs. The code sends what the message was sent with: its
// body byte for byte, and each property with its type. A value that an SDK cannot send goes as a text, and a comment in
// the code says so. The message must be whole: all of its body must be there.
import type { Message, Typed } from "./api";
import { CSHARP, GO, JAVA, JAVASCRIPT, type Literals, PYTHON, goBytes, javaText, jsUuid, quoted, valueOf } from "./code/literals";
import { sentProperties } from "./pages/draft";

/** Members that a sender sets, by their names in the broker's interface. */
const MEMBERS = [
  "message-id",
  "correlation-id",
  "subject",
  "content-type",
  "session-id",
  "to",
  "reply-to",
  "reply-to-session-id",
  "partition-key",
];
/** Members that senders of AMQP set, and for which the SDKs' messages have no place of their own. */
const NOT_SENT = ["priority", "user-id", "content-encoding", "group-sequence", "annotations", "footer"];
const TIME_TO_LIVE = "time-to-live";

/** A body is text, or bytes in base 64. */
type Body = { text: string } | { base64: string };

/** A name and the expression of its value, in one language. */
type Pair = [name: string, expression: string];

interface Parts {
  body: string;
  /** By the names of the broker's interface. */
  members: Pair[];
  /** The names are literals. */
  properties: Pair[];
  /** A literal. */
  entity: string;
  isTopic: boolean;
}

interface Language {
  comment: "#" | "//";
  literals: Literals;
  /** Types that a message id may have beside a text. */
  ids?: Literals;
  body: (body: Body) => string;
  /** The expression of a time. */
  millis: (ms: number) => string;
  lines: (parts: Parts) => string[];
}

const camel = (member: string) => member.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
const pascal = (member: string) => camel(`-${member}`);
const list = (pairs: Pair[]) => pairs.map(([name, value]) => `${name}: ${value}`).join(", ");
/** Lines that are there only if a message has properties. */
const some = (pairs: Pair[], line: (pairs: Pair[]) => string) => (pairs.length > 0 ? [line(pairs)] : []);

const PYTHON_SDK: Language = {
  comment: "#",
  literals: PYTHON,
  body: (body) => ("text" in body ? quoted(body.text) : `base64.b64decode(${quoted(body.base64)})`),
  millis: (ms) => `datetime.timedelta(milliseconds=${ms})`,
  lines: ({ body, members, properties, entity, isTopic }) => {
    const message = [
      "message = ServiceBusMessage(",
      `    ${body},`,
      ...members.map(([name, value]) => `    ${name.replaceAll("-", "_")}=${value},`),
      ...some(properties, (pairs) => `    application_properties={${list(pairs)}},`),
      ")",
    ];
    const modules = ["base64", "datetime", "uuid"].filter((name) => message.some((line) => line.includes(`${name}.`)));
    return [
      ...modules.map((name) => `import ${name}`),
      "from azure.servicebus import ServiceBusMessage",
      "",
      ...message,
      `with client.get_${isTopic ? "topic" : "queue"}_sender(${entity}) as sender:`,
      "    sender.send_messages(message)",
    ];
  },
};

const JAVASCRIPT_SDK: Language = {
  comment: "//",
  literals: JAVASCRIPT,
  ids: {
    ulong: (value) => (typeof value === "bigint" ? null : String(value)),
    uuid: jsUuid,
  },
  // The SDK would send a text as JSON.
  body: (body) => ("text" in body ? `Buffer.from(${quoted(body.text)})` : `Buffer.from(${quoted(body.base64)}, "base64")`),
  millis: String,
  lines: ({ body, members, properties, entity }) => {
    // A plain `__proto__` would set the prototype.
    const named = properties.map(([name, value]): Pair => [name === '"__proto__"' ? `[${name}]` : name, value]);
    const hasTypes = properties.some(([, value]) => value.startsWith("types."));
    return [
      ...(hasTypes ? ['const { types } = require("rhea-promise"); // A dependency of the SDK.'] : []),
      `await client.createSender(${entity}).sendMessages({`,
      `  body: ${body},`,
      ...members.map(([name, value]) => `  ${camel(name)}: ${value},`),
      ...some(named, (pairs) => `  applicationProperties: { ${list(pairs)} },`),
      "});",
    ];
  },
};

const CSHARP_SDK: Language = {
  comment: "//",
  literals: CSHARP,
  body: (body) => ("text" in body ? quoted(body.text) : `Convert.FromBase64String(${quoted(body.base64)})`),
  millis: (ms) => `TimeSpan.FromMilliseconds(${ms})`,
  lines: ({ body, members, properties, entity }) => [
    `var message = new ServiceBusMessage(${body});`,
    ...members.map(([name, value]) => `message.${pascal(name)} = ${value};`),
    ...properties.map(([name, value]) => `message.ApplicationProperties[${name}] = ${value};`),
    `await client.CreateSender(${entity}).SendMessageAsync(message);`,
  ],
};

const JAVA_SDK: Language = {
  comment: "//",
  literals: JAVA,
  body: (body) => ("text" in body ? javaText(body.text) : `java.util.Base64.getDecoder().decode(${javaText(body.base64)})`),
  millis: (ms) => `java.time.Duration.ofMillis(${ms}L)`,
  lines: ({ body, members, properties, entity, isTopic }) => [
    `ServiceBusMessage message = new ServiceBusMessage(${body});`,
    ...members.map(([name, value]) => `message.set${pascal(name)}(${value});`),
    ...properties.map(([name, value]) => `message.getApplicationProperties().put(${name}, ${value});`),
    `builder.sender().${isTopic ? "topic" : "queue"}Name(${entity}).buildClient().sendMessage(message);`,
  ],
};

const GO_SDK: Language = {
  comment: "//",
  literals: GO,
  body: (body) => ("text" in body ? `[]byte(${quoted(body.text)})` : goBytes(body.base64)),
  millis: (ms) => `${ms}*time.Millisecond`,
  lines: ({ body, members, properties, entity }) => [
    "message := &azservicebus.Message{",
    `\tBody: ${body},`,
    ...members.map(([name, value]) => `\t${pascal(name).replace(/Id$/, "ID")}: to.Ptr(${value}),`),
    ...some(properties, (pairs) => `\tApplicationProperties: map[string]any{${list(pairs)}},`),
    "}",
    `sender, err := client.NewSender(${entity}, nil)`,
    "if err != nil {",
    "\treturn err",
    "}",
    "err = sender.SendMessage(ctx, message, nil)",
  ],
};

const SDKS: Record<string, Language> = {
  Python: PYTHON_SDK,
  JavaScript: JAVASCRIPT_SDK,
  "C#": CSHARP_SDK,
  Java: JAVA_SDK,
  Go: GO_SDK,
};

export const LANGUAGES = Object.keys(SDKS);

/** Code that sends `message` to `entity`, by a client of the SDK that is there. */
export function code(language: string, entity: string, isTopic: boolean, message: Message): string {
  const sdk = SDKS[language];
  if (!sdk) throw new Error(`no SDK for ${language}`);
  const notes: string[] = [];
  const expression = (name: string, typed: Typed, literals: Literals) => {
    const { type, value } = valueOf(typed);
    const literal = literals[type]?.(value);
    if (literal !== undefined && literal !== null) return literal;
    notes.push(`${sdk.comment} ${quoted(name)} is a ${type}, which this SDK does not send: here it is a text.`);
    return quoted(String(value));
  };
  const ids: Literals = { string: sdk.literals.string, ...sdk.ids };
  const members = MEMBERS.filter((name) => message[name] !== undefined && message[name] !== null).map(
    (name): Pair => [name, expression(name, message[name] as Typed, name.endsWith("-id") ? ids : { string: ids.string })],
  );
  const lifetime = message[TIME_TO_LIVE];
  if (typeof lifetime === "string") members.push([TIME_TO_LIVE, sdk.millis(millisOf(lifetime))]);
  const properties = sentProperties(message).map(
    ([name, value]): Pair => [quoted(name), expression(name, value, sdk.literals)],
  );
  if (message["body-type"] !== undefined) notes.push(`${sdk.comment} The body was an AMQP value: here it is data.`);
  const lost = NOT_SENT.filter((name) => message[name] !== undefined);
  if (lost.length > 0) notes.push(`${sdk.comment} Not set here: ${lost.join(", ")}.`);
  const base64 = message["body-base64"];
  const body = sdk.body(base64 === undefined ? { text: message.body ?? "" } : { base64 });
  return [...notes, ...sdk.lines({ body, members, properties, entity: quoted(entity), isTopic })].join("\n");
}

/** Milliseconds of a duration by ISO 8601, such as P1DT2H3M4.5S. */
function millisOf(text: string): number {
  const [, days, hours, minutes, seconds] = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?$/.exec(text) ?? [];
  const part = (value: string | undefined) => Number(value ?? 0);
  return Math.round((((part(days) * 24 + part(hours)) * 60 + part(minutes)) * 60 + part(seconds)) * 1000);
}
