// The namespace as a file: exported, compared with what there is, and applied.
import { useState } from "preact/hooks";
import { type Json, call, get } from "../api";
import { count, many } from "../format";
import { Copy, Failure, Panel, useAsk } from "../ui";
import { type Plan, PlanView } from "./plan-view";

/** A file of more characters is not shown: a text field of megabytes takes a hundred times as much memory. */
const SHOWN = 256 << 10;

/** The entities without what is no setting. */
function exported(namespace: Json): Json {
  return JSON.parse(JSON.stringify(namespace, (name, value) => (name === "state" ? undefined : value))) as Json;
}

/** Gives the browser a text to save. */
function download(text: string) {
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = "railbus.json";
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export function Settings() {
  const [text, setText] = useState("");
  const [plan, setPlan] = useState<Plan | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [isAuthoritative, setAuthoritative] = useState(false);
  const { ask, view } = useAsk();
  const body = () => ({ ...(JSON.parse(text) as Json), authoritative: isAuthoritative });
  const attempt = (work: () => Promise<void>) => {
    setError(null);
    work().catch((error: Error) => setError(error.message));
  };
  const load = () =>
    attempt(async () => {
      setText(JSON.stringify(exported(await get<Json>("entities")), null, 2));
      setPlan(null);
    });
  const choose = (file: File | undefined) =>
    attempt(async () => {
      setText((await file?.text()) ?? "");
      setPlan(null);
    });
  const show = () => attempt(async () => setPlan(await call<Plan>("POST", "plan", body())));
  const apply = () => {
    const deletions = plan?.changes.filter((change) => change.action === "delete").length ?? 0;
    ask({
      title: "Apply the file",
      text: `${many(plan?.changes.length ?? 0, "change")}, of which ${many(deletions, "deletion")}.`,
      action: "Apply",
      run: async () => {
        const done = await call<Plan>("POST", "apply", body());
        setPlan(null);
        return `${many(done.changes.length, "change")} applied.`;
      },
    });
  };
  return (
    <>
      <h1>Settings</h1>
      {view}
      <Panel
        title="Queues, topics and subscriptions as a file"
        aside={
          <div class="toolbar">
            <button type="button" onClick={load}>
              Export
            </button>
            <button type="button" disabled={!text} onClick={() => download(text)}>
              Download
            </button>
            <Copy text={text} label="Copy" />
          </div>
        }
      >
        <div class="sheet">
          <label>
            A file of this computer
            <input type="file" accept=".json" onChange={(event) => choose(event.currentTarget.files?.[0])} />
          </label>
          {text.length > SHOWN ? (
            <p class="note">
              The file has {count(text.length)} characters, too many to be edited here. It can be downloaded, edited and
              chosen again.
            </p>
          ) : (
            <label>
              The file in JSON
              <textarea
                rows={16}
                spellcheck={false}
                value={text}
                onInput={(event) => {
                  setText(event.currentTarget.value);
                  setPlan(null);
                }}
              />
            </label>
          )}
          <label class="check">
            <input
              type="checkbox"
              checked={isAuthoritative}
              onChange={(event) => {
                setAuthoritative(event.currentTarget.checked);
                setPlan(null);
              }}
            />
            Delete what the file does not have
          </label>
          <Failure error={error} />
          <footer>
            <button type="button" disabled={!text} onClick={show}>
              Show the plan
            </button>
            <button
              type="button"
              class="primary"
              disabled={!plan || plan.changes.length === 0 || plan.refused.length > 0}
              onClick={apply}
            >
              Apply
            </button>
          </footer>
        </div>
      </Panel>
      {plan && (
        <Panel title="Plan">
          <PlanView plan={plan} />
        </Panel>
      )}
    </>
  );
}
