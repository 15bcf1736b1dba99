// The settings of an entity, which are changed as a plan that is shown first.
import { useState } from "preact/hooks";
import { type Json, call, entityPath, get } from "../api";
import { useData } from "../data";
import { Failure, Panel, useAsk } from "../ui";

/** Members that are shown elsewhere, or are no settings. */
const OTHERS = ["name", "kind", "state", "subscriptions", "rules"];

function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** What was typed, as the type of the value that it replaces has it. */
function parsed(text: string, before: unknown): unknown {
  if (typeof before === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function Properties({ path, canChange }: { path: string; canChange: boolean }) {
  const page = useData<Json>((signal) => get(entityPath(path), signal), [path]);
  const [typed, setTyped] = useState<Record<string, string>>({});
  const { ask, view } = useAsk();
  const settings = Object.entries(page.value ?? {}).filter(([name]) => !OTHERS.includes(name));
  const changes = settings.filter(([name, value]) => typed[name] !== undefined && typed[name] !== text(value));
  const change = () =>
    ask({
      title: `Change ${path}`,
      text: changes.map(([name, value]) => `${name}: ${text(value)} → ${typed[name]}`).join("; "),
      action: "Change",
      run: async () => {
        const patch = Object.fromEntries(changes.map(([name, value]) => [name, parsed(typed[name] ?? "", value)]));
        await call("PATCH", entityPath(path), patch);
        setTyped({});
        page.reload();
        return "The settings are changed.";
      },
    });
  return (
    <Panel
      title="Settings"
      aside={
        canChange && (
          <button type="button" class="primary" disabled={changes.length === 0} onClick={change}>
            Show the change
          </button>
        )
      }
    >
      {view}
      <Failure error={page.error} />
      <dl class="settings">
        {settings.map(([name, value]) => (
          <div key={name}>
            <dt id={`setting-${name}`}>{name}</dt>
            <dd>
              {canChange ? (
                <input
                  aria-labelledby={`setting-${name}`}
                  value={typed[name] ?? text(value)}
                  onInput={(event) => setTyped({ ...typed, [name]: event.currentTarget.value })}
                />
              ) : (
                <code>{text(value)}</code>
              )}
            </dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}
