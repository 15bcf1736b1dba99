// The fault rules of a namespace: operations that fail on purpose. Shown with what each has done, added, and removed.
import { useState } from "preact/hooks";
import { type Json, call, get, namespacePath } from "../api";
import { useData } from "../data";
import { count, many } from "../format";
import { Table } from "../table";
import { Count, Failure, Panel, useAsk } from "../ui";
import { NewFault } from "./new-fault";

interface Fault {
  name: string;
  match: Json;
  effect: unknown;
  matched: number;
  injected: number;
}

interface Faults {
  faults: Fault[];
}

/** The rule as it was given. */
function rule({ matched: _matched, injected: _injected, ...rule }: Fault) {
  return rule;
}

/** What a rule means that does not say. */
const DEFAULTS: Json = { every: 1, probability: 1, seed: 0, skip: 0 };

function matchText(match: Json): string {
  const said = Object.entries(match).filter(([name, value]) => value !== DEFAULTS[name]);
  return said.length === 0 ? "all operations" : JSON.stringify(Object.fromEntries(said));
}

export function FaultRules({ name }: { name: string }) {
  const path = namespacePath(name, "faults");
  const page = useData<Faults>((signal) => get(path, signal), [name], true);
  const [isNew, setNew] = useState(false);
  const { ask, say, view } = useAsk();
  const faults = page.value?.faults ?? [];
  const remove = (fault: Fault) =>
    ask({
      title: `Remove ${fault.name}`,
      text: `The rule ${fault.name} of the namespace ${name} is removed. Operations do not fail by it any more.`,
      action: "Remove",
      run: async () => {
        const now = await get<Faults>(path);
        const others = now.faults.filter((one) => one.name !== fault.name).map(rule);
        await call("PUT", path, { faults: others });
        page.reload();
        return `The rule ${fault.name} is removed.`;
      },
    });
  const clear = () =>
    ask({
      title: "Remove all rules",
      text: `All ${many(faults.length, "fault rule")} of the namespace ${name} are removed. No operation fails on purpose any more.`,
      action: "Remove all",
      run: async () => {
        await call("DELETE", path);
        page.reload();
        return "All rules are removed.";
      },
    });
  return (
    <>
      <h1>Faults</h1>
      <div class="toolbar">
        <span class="grow">Operations on {name} that fit a rule fail on purpose. The first rule that fits decides.</span>
        {faults.length > 0 && (
          <button type="button" class="danger" onClick={clear}>
            Remove all
          </button>
        )}
        <button type="button" class="primary" onClick={() => setNew(true)}>
          New rule
        </button>
      </div>
      {view}
      <Failure error={page.error} />
      <Panel title={many(faults.length, "fault rule")}>
        <Table
          empty={page.value ? "There is no rule, so nothing fails on purpose." : "Reading…"}
          rows={faults}
          id={(fault) => fault.name}
          columns={[
            { name: "Rule", cell: (fault) => fault.name },
            { name: "Fits", cell: (fault) => <code>{matchText(fault.match)}</code> },
            { name: "Effect", cell: (fault) => <code>{JSON.stringify(fault.effect)}</code> },
            { name: "Fitted", isNumber: true, cell: (fault) => count(fault.matched) },
            { name: "Failed", isNumber: true, cell: (fault) => <Count value={fault.injected} tone="warn" /> },
            {
              name: "Actions",
              isNameless: true,
              class: "number",
              cell: (fault) => (
                <button type="button" class="danger" onClick={() => remove(fault)}>
                  Remove
                </button>
              ),
            },
          ]}
        />
      </Panel>
      {isNew && (
        <NewFault
          path={path}
          close={(said) => {
            setNew(false);
            if (said) say(said);
            page.reload();
          }}
        />
      )}
    </>
  );
}
