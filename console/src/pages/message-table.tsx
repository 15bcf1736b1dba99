// Rows of messages; a click or Enter opens one.
import type { ComponentChildren } from "preact";
import type { Message } from "../api";
import { age, bytes, time, typed } from "../format";
import { Table } from "../table";

interface Props {
  messages: Message[];
  empty?: ComponentChildren;
  open: (number: number) => void;
}

export function MessageTable({ messages, empty, open }: Props) {
  const lock = (left: number | undefined) => (left === undefined ? "" : age(left));
  return (
    <Table
      empty={empty}
      rows={messages}
      id={(message) => message["sequence-number"]}
      columns={[
        {
          name: "Number",
          isNumber: true,
          cell: (message) => (
            <button type="button" class="quiet link" onClick={() => open(message["sequence-number"])}>
              {message["sequence-number"]}
            </button>
          ),
        },
        { name: "Id", class: "cut", cell: (message) => typed(message["message-id"]) },
        { name: "Subject", class: "cut", cell: (message) => message.subject },
        { name: "Session", class: "cut", cell: (message) => message["session-id"] },
        {
          name: "Enqueued",
          class: "time",
          cell: (message) => time(message["scheduled-enqueue-time"] ?? message["enqueued-time"]),
        },
        { name: "Deliveries", isNumber: true, cell: (message) => message["delivery-count"] ?? 0 },
        { name: "Lock", cell: (message) => lock(message["lock-left-ms"]) },
        { name: "Body", class: "cut wide", cell: (message) => <Preview message={message} /> },
      ]}
    />
  );
}

function Preview({ message }: { message: Message }) {
  if (message.error) return <span class="failure">{message.error}</span>;
  if (message.body !== undefined) return <>{message.body}</>;
  if (message["body-base64"] !== undefined) return <span class="note">binary</span>;
  return (
    <>
      {message["body-start"]}… <span class="note">{bytes(message["body-bytes"] ?? 0)}</span>
    </>
  );
}
