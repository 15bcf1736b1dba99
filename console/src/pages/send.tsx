// Sends one message to a queue or a topic.
import { useState } from "preact/hooks";
import { call, entityPath } from "../api";
import { FORMS, type Form, bytesOfBase64, members, parse, present, show } from "../body-bytes";
import { parseExact, stringifyExact } from "../exact";
import { Failure, Panel } from "../ui";
import { takeDraft } from "./draft";

const FIELDS: { name: string; label: string; hint?: string }[] = [
  { name: "message-id", label: "Message id" },
  { name: "subject", label: "Subject" },
  { name: "session-id", label: "Session id" },
  { name: "correlation-id", label: "Correlation id" },
  { name: "content-type", label: "Content type", hint: "application/json" },
  { name: "time-to-live", label: "Time to live", hint: "PT1H" },
  { name: "scheduled-enqueue-time", label: "Enqueue at", hint: "2030-01-01T12:00:00Z" },
];

function words(value: unknown): string {
  return typeof value === "string" ? value : value === undefined ? "" : stringifyExact(value);
}

/** A draft with what was typed; a member that is not typed anew keeps its type. */
function edited(draft: Record<string, unknown>, fields: Record<string, string>): Record<string, unknown> {
  const { properties: _, body: __, "body-base64": ___, ...message } = draft;
  for (const [name, text] of Object.entries(fields)) {
    if (text === "") delete message[name];
    else if (text !== words(draft[name])) message[name] = text;
  }
  return message;
}

/** The body of a draft, as it is edited. */
function bodyOf(draft?: Record<string, unknown>): { form: Form; text: string } {
  const base64 = draft?.["body-base64"];
  if (typeof base64 === "string") return present(bytesOfBase64(base64));
  return { form: "Text", text: words(draft?.body) };
}

export function Send(props: { path: string }) {
  const [kept] = useState(takeDraft);
  const draft = kept?.message;
  const [replaced, setReplaced] = useState(kept?.replaced);
  const [path, setPath] = useState(props.path);
  const [body, setBody] = useState(() => bodyOf(draft));
  const [fields, setFields] = useState<Record<string, string>>(
    Object.fromEntries(FIELDS.map(({ name }) => [name, words(draft?.[name])])),
  );
  const [properties, setProperties] = useState(draft?.properties ? stringifyExact(draft.properties, 2) : "");
  const [error, setError] = useState<string | null>(null);
  const [said, setSaid] = useState<string | null>(null);
  const change = (form: Form) => {
    try {
      setBody({ form, text: show(form, parse(body.form, body.text)) });
      setError(null);
    } catch (error) {
      // The choice goes back to what it was.
      setBody({ ...body });
      setError((error as Error).message);
    }
  };
  const load = async (file?: File) => {
    if (file) setBody(present(new Uint8Array(await file.arrayBuffer())));
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    setError(null);
    setSaid(null);
    try {
      const message = edited(draft ?? {}, fields);
      Object.assign(message, members(body.form, body.text));
      if (properties.trim()) message.properties = parseExact(properties);
      if (replaced) {
        const { part, number } = replaced;
        const settle = { part, "sequence-number": number, outcome: "redrive", message };
        const answer = await call<{ sent?: number }>("POST", entityPath(replaced.path, "/settle"), settle);
        // That of a subscription is put back without a word about its number.
        const stored = answer.sent === undefined ? "put back" : `stored as number ${answer.sent}`;
        setSaid(`The message is ${stored}, and dead letter ${number} is removed.`);
        setReplaced(undefined);
      } else {
        const answer = await call<{ "sequence-number": number }>("POST", entityPath(path, "/messages"), message);
        setSaid(`The message is stored as number ${answer["sequence-number"]}.`);
      }
    } catch (error) {
      setError((error as Error).message);
    }
  };
  return (
    <>
      <h1>{replaced ? "Edit and redrive" : "Send"}</h1>
      {replaced && (
        <p class="note">
          The message goes to {replaced.path} in place of dead letter {replaced.number}, which is removed then.
        </p>
      )}
      <Panel title="Message">
        <form class="sheet" onSubmit={submit}>
          <label>
            Queue or topic
            <input required readOnly={replaced !== undefined} value={path} onInput={(event) => setPath(event.currentTarget.value)} />
          </label>
          <label>
            Body
            <textarea rows={8} value={body.text} onInput={(event) => setBody({ ...body, text: event.currentTarget.value })} />
          </label>
          {typeof draft?.["body-type"] === "string" && (
            <p class="note">It is sent as an AMQP value of the type {draft["body-type"]}, as it was.</p>
          )}
          <div class="fields">
            <label>
              Written as
              <select value={body.form} onChange={(event) => change(event.currentTarget.value as Form)}>
                {FORMS.map((form) => (
                  <option key={form}>{form}</option>
                ))}
              </select>
            </label>
            <label>
              Taken from a file
              <input type="file" onChange={(event) => load(event.currentTarget.files?.[0])} />
            </label>
          </div>
          <div class="fields">
            {FIELDS.map(({ name, label, hint }) => (
              <label key={name}>
                {label}
                <input
                  placeholder={hint}
                  value={fields[name]}
                  onInput={(event) => setFields({ ...fields, [name]: event.currentTarget.value })}
                />
              </label>
            ))}
          </div>
          <label>
            Application properties <span class="note">an object in JSON</span>
            <textarea
              rows={4}
              placeholder='{"color": "red", "n": 5}'
              value={properties}
              onInput={(event) => setProperties(event.currentTarget.value)}
            />
          </label>
          <Failure error={error} />
          {said && (
            <p class="said" role="status">
              {said}
            </p>
          )}
          <footer>
            <button type="submit" class="primary">
              {replaced ? "Redrive" : "Send"}
            </button>
          </footer>
        </form>
      </Panel>
    </>
  );
}
