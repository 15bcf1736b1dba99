// A body as text, as a tree of JSON, or as bytes. Text of a message is never markup.
import { useMemo, useState } from "preact/hooks";
import type { Message } from "./api";
import { bytesOfBase64 } from "./body-bytes";
import { bytes } from "./format";

/** Bytes that are shown as hexadecimal at most. */
const HEX = 4096;

type View = "Text" | "JSON" | "Hex";

function bytesOf(message: Shown): Uint8Array {
  const base64 = message["body-base64"];
  if (base64 !== undefined) return bytesOfBase64(base64);
  return new TextEncoder().encode(message.body ?? message["body-start"] ?? "");
}

function json(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What the views need of a message, or of what is shown as its body. */
type Shown = Pick<Message, "body" | "body-base64" | "body-bytes" | "body-start">;

export function BodyView({ message, name = "Body", of = "the message" }: { message: Shown; name?: string; of?: string }) {
  const tree = useMemo(() => json(message.body), [message]);
  const isTree = typeof tree === "object" && tree !== null;
  const [view, setView] = useState<View>(isTree ? "JSON" : message["body-base64"] === undefined ? "Text" : "Hex");
  const views: View[] = isTree ? ["Text", "JSON", "Hex"] : ["Text", "Hex"];
  const cut = message["body-bytes"];
  return (
    <section class="bodyview">
      <div class="toolbar">
        <h3>{name}</h3>
        {cut !== undefined && <span class="note">the start of {bytes(cut)}</span>}
        <span class="grow" />
        {views.map((one) => (
          <button key={one} type="button" aria-pressed={one === view} onClick={() => setView(one)}>
            {one}
          </button>
        ))}
      </div>
      <div class="bodytext" tabIndex={0} role="region" aria-label={`${name} of ${of}`}>
        {view === "JSON" && isTree ? <Tree value={tree} /> : <pre>{view === "Hex" ? hex(bytesOf(message)) : text(message)}</pre>}
      </div>
    </section>
  );
}

function text(message: Shown): string {
  if (message["body-base64"] !== undefined) return new TextDecoder().decode(bytesOf(message));
  return message.body ?? message["body-start"] ?? "";
}

/** Lines of 16 bytes: the place, the bytes, and those that are ASCII. */
function hex(all: Uint8Array): string {
  const lines = [];
  for (let at = 0; at < Math.min(all.length, HEX); at += 16) {
    const line = Array.from(all.subarray(at, at + 16));
    const digits = line.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const shown = line.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "."));
    lines.push(`${at.toString(16).padStart(6, "0")}  ${digits.padEnd(47)}  ${shown.join("")}`);
  }
  if (all.length > HEX) lines.push(`… ${all.length - HEX} more bytes`);
  return lines.join("\n");
}

function Tree({ value, name }: { value: unknown; name?: string }) {
  const label = name === undefined ? null : <span class="key">{name}: </span>;
  if (typeof value !== "object" || value === null) {
    return (
      <div>
        {label}
        <span class={`value ${typeof value}`}>{JSON.stringify(value)}</span>
      </div>
    );
  }
  const members = Object.entries(value);
  return (
    <details open>
      <summary>
        {label}
        <span class="note">{Array.isArray(value) ? `[${members.length}]` : `{${members.length}}`}</span>
      </summary>
      {members.map(([name, value]) => (
        <Tree key={name} name={name} value={value} />
      ))}
    </details>
  );
}
