// A new fault rule. The broker says what is wrong with it.
import { useState } from "preact/hooks";
import { type Json, call } from "../api";
import { Dialog, Failure } from "../ui";

const MORE = "Further conditions";

const ERRORS = [
  "server-busy",
  "timeout",
  "quota-exceeded",
  "entity-disabled",
  "not-found",
  "unauthorized",
  "internal-error",
  "detach-forced",
  "connection-forced",
];

/** What each choice means to the broker. It stands in JSON below the choice, where it can be changed. */
const EFFECTS: { name: string; effect: unknown }[] = [
  ...ERRORS.map((error) => ({ name: `refuse: ${error}`, effect: { refuse: error } })),
  { name: "detach the link", effect: { detach: "detach-forced" } },
  { name: "end the session of the link", effect: { end: "internal-error" } },
  { name: "close the connection", effect: { close: "connection-forced" } },
  { name: "disconnect before it is carried out", effect: { disconnect: "before" } },
  { name: "disconnect before the answer", effect: { disconnect: "after" } },
  { name: "delay by a second", effect: { "delay-ms": 1000 } },
  { name: "answer a second late", effect: { "delay-answer-ms": 1000 } },
  { name: "throttle to ten a second", effect: { "throttle-per-second": 10 } },
  { name: "withhold credit for a second", effect: { "withhold-credit-ms": 1000 } },
  { name: "expire the token", effect: "expire-token" },
  { name: "lose the lock", effect: "lose-lock" },
  { name: "deliver again", effect: "deliver-again" },
];

function json(field: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${field}: not JSON`);
  }
}

/** An object in JSON, or nothing. */
function conditions(text: string): Json {
  const parsed = text.trim() === "" ? {} : json(MORE, text);
  if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed as Json;
  throw new Error(`${MORE}: not an object in JSON such as {"every": 3}`);
}

export function NewFault({ path, close }: { path: string; close: (said?: string) => void }) {
  const [rule, setRule] = useState({
    name: "",
    entity: "",
    operations: "",
    effect: JSON.stringify(EFFECTS[0]?.effect),
    times: "",
    more: "",
  });
  const [error, setError] = useState<string | null>(null);
  const text = (field: keyof typeof rule, label: string, note: string, placeholder: string) => (
    <label>
      <span>
        {label} {note && <span class="note">{note}</span>}
      </span>
      <input
        required={field === "name" || field === "effect"}
        placeholder={placeholder}
        value={rule[field]}
        onInput={(event) => setRule({ ...rule, [field]: event.currentTarget.value })}
      />
    </label>
  );
  const add = async () => {
    const match = conditions(rule.more);
    const operations = rule.operations.split(/[\s,]+/).filter(Boolean);
    if (rule.entity) match.entity = rule.entity;
    if (operations.length > 0) match.operations = operations;
    if (rule.times) match.times = Number(rule.times);
    await call("POST", path, { name: rule.name, match, effect: json("Effect in JSON", rule.effect) });
    close(`The rule ${rule.name} is added.`);
  };
  return (
    <Dialog title="New fault rule" close={() => close()}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setError(null);
          add().catch((error: Error) => setError(error.message));
        }}
      >
        {text("name", "Name", "", "busy")}
        <label>
          Effect
          <select
            aria-label="Effect"
            value={rule.effect}
            onChange={(event) => setRule({ ...rule, effect: event.currentTarget.value })}
          >
            {EFFECTS.map(({ name, effect }) => (
              <option key={name} value={JSON.stringify(effect)}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {text("effect", "Effect in JSON", "", '{"delay-ms": 250}')}
        {text("entity", "Entity", "all of the namespace without it", "orders")}
        {text("operations", "Operations", "all without it", "send, complete")}
        {text("times", "Times", "without end without it", "2")}
        {text("more", MORE, "in JSON", '{"every": 3, "skip": 1}')}
        <Failure error={error} />
        <footer>
          <button type="button" onClick={() => close()}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Add the rule
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
