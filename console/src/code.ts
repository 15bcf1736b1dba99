// A message as code that sends it, for each of the five SDKs.
import type { Message } from "./api";
import { typed } from "./format";

export const LANGUAGES = ["Python", "JavaScript", "C#", "Java", "Go"] as const;

/** A text as a literal; the escapes of JSON are known to all five languages. */
const quoted = (text: string) => JSON.stringify(text);

export function code(language: string, entity: string, message: Message): string {
  const body = quoted(message.body ?? message["body-start"] ?? "");
  const id = message["message-id"] === undefined ? null : quoted(typed(message["message-id"]));
  const subject = message.subject === undefined ? null : quoted(message.subject);
  const session = message["session-id"] === undefined ? null : quoted(message["session-id"]);
  const properties = Object.entries(message.properties ?? {}).map(
    ([name, value]) => [quoted(name), quoted(typed(value))] as const,
  );
  const to = quoted(entity);
  const some = (...lines: (string | null | false)[]) => lines.filter((line) => line !== null && line !== false).join("\n");
  switch (language) {
    case "Python":
      return some(
        "message = ServiceBusMessage(",
        `    ${body},`,
        id && `    message_id=${id},`,
        subject && `    subject=${subject},`,
        session && `    session_id=${session},`,
        properties.length > 0 &&
          `    application_properties={${properties.map(([name, value]) => `${name}: ${value}`).join(", ")}},`,
        ")",
        `with client.get_queue_sender(${to}) as sender:`,
        "    sender.send_messages(message)",
      );
    case "JavaScript":
      return some(
        `await client.createSender(${to}).sendMessages({`,
        `  body: ${body},`,
        id && `  messageId: ${id},`,
        subject && `  subject: ${subject},`,
        session && `  sessionId: ${session},`,
        properties.length > 0 &&
          `  applicationProperties: { ${properties.map(([name, value]) => `${name}: ${value}`).join(", ")} },`,
        "});",
      );
    case "C#":
      return some(
        `var message = new ServiceBusMessage(${body});`,
        id && `message.MessageId = ${id};`,
        subject && `message.Subject = ${subject};`,
        session && `message.SessionId = ${session};`,
        ...properties.map(([name, value]) => `message.ApplicationProperties[${name}] = ${value};`),
        `await client.CreateSender(${to}).SendMessageAsync(message);`,
      );
    case "Java":
      return some(
        `ServiceBusMessage message = new ServiceBusMessage(${body});`,
        id && `message.setMessageId(${id});`,
        subject && `message.setSubject(${subject});`,
        session && `message.setSessionId(${session});`,
        ...properties.map(([name, value]) => `message.getApplicationProperties().put(${name}, ${value});`),
        `builder.sender().queueName(${to}).buildClient().sendMessage(message);`,
      );
    default:
      return some(
        "message := &azservicebus.Message{",
        `\tBody: []byte(${body}),`,
        id && `\tMessageID: to.Ptr(${id}),`,
        subject && `\tSubject: to.Ptr(${subject}),`,
        session && `\tSessionID: to.Ptr(${session}),`,
        properties.length > 0 &&
          `\tApplicationProperties: map[string]any{${properties.map(([name, value]) => `${name}: ${value}`).join(", ")}},`,
        "}",
        `sender, err := client.NewSender(${to}, nil)`,
        "// Handle err.",
        "err = sender.SendMessage(ctx, message, nil)",
      );
  }
}
