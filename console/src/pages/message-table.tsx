// Rows of messages; a click or Enter opens one.
import type { Message } from "../api";
import { age, bytes, time, typed } from "../format";

export function MessageTable({ messages, open }: { messages: Message[]; open: (number: number) => void }) {
  return (
    <div class="scroll">
      <table class="messages">
        <thead>
          <tr>
            <th scope="col" class="number">
              Number
            </th>
            <th scope="col">Id</th>
            <th scope="col">Subject</th>
            <th scope="col">Session</th>
            <th scope="col">Enqueued</th>
            <th scope="col" class="number">
              Deliveries
            </th>
            <th scope="col">Lock</th>
            <th scope="col">Body</th>
          </tr>
        </thead>
        <tbody>
          {messages.map((message) => (
            <tr key={message["sequence-number"]}>
              <td class="number">
                <button type="button" class="quiet link" onClick={() => open(message["sequence-number"])}>
                  {message["sequence-number"]}
                </button>
              </td>
              <td class="cut">{typed(message["message-id"])}</td>
              <td class="cut">{message.subject}</td>
              <td class="cut">{message["session-id"]}</td>
              <td class="time">{time(message["scheduled-enqueue-time"] ?? message["enqueued-time"])}</td>
              <td class="number">{message["delivery-count"] ?? 0}</td>
              <td>{message["lock-left-ms"] === undefined ? "" : age(message["lock-left-ms"])}</td>
              <td class="cut wide">
                <Preview message={message} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
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
