// The settings of an entity and where each comes from. The broker plans a change, and the plan is shown before the
// change is made.
import { useState } from "preact/hooks";
import { type Json, type Session, call, entityPath, get, topicOf } from "../api";
import { useData } from "../data";
import { Badge, Failure, Panel, useAsk } from "../ui";
import { type Plan, PlanView } from "./plan-view";

/** Members that are shown elsewhere, or are no settings. */
const OTHERS = ["name", "kind", "state", "subscriptions", "rules"];

interface State {
  /** Settings that are not the defaults. */
  set: string[];
  /** Settings that the entity has no value for, with the value that the broker has for them. */
  unset?: Json;
  /** The policies that apply, and the settings that are in force because of them. */
  policy: { user: string | null; operator: string | null; settings: Json } | null;
}

/** No value is an empty text. */
function text(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** What was typed, as the type of the value that it replaces has it; without a text no value. */
function parsed(name: string, text: string, before: unknown): unknown {
  if (text.trim() === "") return null;
  if (typeof before === "string" || name.startsWith("forward-")) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The file that has the entity alone, as it is to be. */
async function file(path: string, entity: Json, changes: Json): Promise<Json> {
  const { state: _state, kind, ...settings } = entity;
  const all = Object.entries({ ...settings, ...changes });
  // A file says nothing of what has no value.
  const changed = Object.fromEntries(all.filter(([, value]) => value !== null));
  if (kind === "queue") return { queues: [changed] };
  if (kind === "topic") return { topics: [{ ...changed, subscriptions: [] }] };
  const topic = await get<Json>(entityPath(topicOf(path)));
  const { state: _of, kind: _topic, ...own } = topic;
  return { topics: [{ ...own, subscriptions: [changed] }] };
}

function Changes({ before, patch }: { before: Json; patch: Json }) {
  return (
    <ul>
      {Object.entries(patch).map(([name, value]) => (
        <li key={name}>{`${name}: ${text(before[name]) || "none"} → ${text(value) || "none"}`}</li>
      ))}
    </ul>
  );
}

export function Properties({ path, session }: { path: string; session: Session }) {
  const canChange = session.manage;
  const page = useData<Json>((signal) => get(entityPath(path), signal), [path]);
  const [typed, setTyped] = useState<Record<string, string>>({});
  const [error, setError] = useState<string | null>(null);
  const { ask, view } = useAsk();
  const entity = page.value ?? {};
  const state = entity.state as State | undefined;
  const unset = Object.keys(state?.unset ?? {}).map((name): [string, unknown] => [name, undefined]);
  const settings = [...Object.entries(entity).filter(([name]) => !OTHERS.includes(name)), ...unset];
  const changed = settings.filter(([name, value]) => typed[name] !== undefined && typed[name] !== text(value));
  const patch = Object.fromEntries(changed.map(([name, value]) => [name, parsed(name, typed[name] ?? "", value)]));
  /** What the broker would do; nothing if it refuses. */
  const plan = async () => {
    const plan = await call<Plan>("POST", "plan", await file(path, entity, patch));
    const refused = plan.refused.map(({ reason }) => reason);
    if (refused.length === 0) return <PlanView plan={plan} />;
    setError(refused.join("; "));
    return null;
  };
  const change = async () => {
    setError(null);
    // A plan is one of the namespace, which a key of an entity has no right to.
    const detail = session["entities-only"] ? <Changes before={entity} patch={patch} /> : await plan();
    if (!detail) return;
    ask({
      title: `Change ${path}`,
      text: "The broker makes these changes:",
      detail,
      action: "Change",
      run: async () => {
        await call("PATCH", entityPath(path), patch);
        setTyped({});
        page.reload();
        return "The settings are changed.";
      },
    });
  };
  return (
    <Panel
      title="Settings"
      aside={
        canChange && (
          <button
            type="button"
            class="primary"
            disabled={changed.length === 0}
            onClick={() => void change().catch((error: Error) => setError(error.message))}
          >
            Show the change
          </button>
        )
      }
    >
      {view}
      <Failure error={page.error ?? error} />
      {state?.policy && (
        <p class="note">
          Policies apply: {[state.policy.user, state.policy.operator].filter(Boolean).join(", ")}. Settings are the
          entity's own; where a policy decides, the value in force stands below.
        </p>
      )}
      <dl class="settings">
        {settings.map(([name, value]) => (
          <div key={name}>
            <dt>
              <span id={`setting-${name}`}>{name}</span> <Source name={name} state={state} />
            </dt>
            <dd>
              {canChange ? (
                <input
                  aria-labelledby={`setting-${name}`}
                  placeholder={placeholder(state?.unset?.[name])}
                  value={typed[name] ?? text(value)}
                  onInput={(event) => setTyped({ ...typed, [name]: event.currentTarget.value })}
                />
              ) : (
                <code>{text(value) || placeholder(state?.unset?.[name])}</code>
              )}
              {state?.policy && name in state.policy.settings && (
                <code>in force: {text(state.policy.settings[name])}</code>
              )}
            </dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}

/** What stands where the entity has no value. */
function placeholder(ofBroker: unknown): string {
  return text(ofBroker) || "none";
}

/** Where the value in force comes from. */
function Source({ name, state }: { name: string; state: State | undefined }) {
  if (state?.policy && name in state.policy.settings) return <Badge text="policy" tone="warn" />;
  if (typeof state?.unset?.[name] === "string" || typeof state?.unset?.[name] === "number") return <Badge text="broker" tone="plain" />;
  return state?.set.includes(name) ? <Badge text="set" /> : <Badge text="default" tone="plain" />;
}
