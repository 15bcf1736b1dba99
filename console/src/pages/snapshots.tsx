// The snapshots of a namespace: taken, gone back to, removed, and made another namespace of.
import { useState } from "preact/hooks";
import { call, get, namespacePath } from "../api";
import { useData } from "../data";
import { bytes, count, many, time } from "../format";
import { link } from "../route";
import { Table } from "../table";
import { Copy, Failure, Panel, useAsk } from "../ui";

interface Snapshot {
  name: string;
  created: string;
  entities: number;
  messages: number;
  bytes: number;
}

interface Made {
  name: string;
  "connection-string"?: string;
}

const NEW_NAME = "Name of the new namespace";

const had = (one: Snapshot) => `${many(one.entities, "entity", "entities")} and ${many(one.messages, "message")}`;

export function Snapshots({ name }: { name: string }) {
  const path = (below: string) => namespacePath(name, below);
  const page = useData<{ snapshots: Snapshot[] }>((signal) => get(path("snapshots"), signal), [name]);
  const [typed, setTyped] = useState("");
  const [error, setError] = useState<string | null>(null);
  const [made, setMade] = useState<Made | null>(null);
  const { ask, say, view } = useAsk();
  const take = () => {
    setError(null);
    call<Snapshot>("POST", path("snapshots"), { name: typed })
      .then((taken) => {
        setTyped("");
        say(`The snapshot ${taken.name} has ${had(taken)}.`);
        page.reload();
      })
      .catch((error: Error) => setError(error.message));
  };
  const restore = (one: Snapshot) =>
    ask({
      title: `Restore ${one.name}`,
      text: `All entities and messages that the namespace ${name} has now are deleted, and it has those of ${time(one.created)} again: ${had(one)}. Locks are void, and receivers are detached. This cannot be undone.`,
      action: "Restore",
      run: async () => {
        await call("POST", path("restore"), { snapshot: one.name });
        return `The namespace ${name} is as it was in ${one.name}.`;
      },
    });
  const remove = (one: Snapshot) =>
    ask({
      title: `Remove ${one.name}`,
      text: `The snapshot ${one.name} of the namespace ${name} is removed: ${had(one)}. What the namespace has now stays. This cannot be undone.`,
      action: "Remove",
      run: async () => {
        await call("DELETE", path(`snapshots/${encodeURIComponent(one.name)}`));
        page.reload();
        return `The snapshot ${one.name} is removed.`;
      },
    });
  const fork = (snapshot?: Snapshot) =>
    ask({
      title: snapshot ? `Fork ${snapshot.name}` : `Fork ${name}`,
      text: `Another namespace is made with the entities and messages of ${snapshot ? `the snapshot ${snapshot.name}` : `the namespace ${name} as it is now`}. The namespace ${name} stays as it is.`,
      action: "Fork",
      isHarmless: true,
      fields: [NEW_NAME],
      run: async (said) => {
        const wanted = { name: said[NEW_NAME] ?? "", snapshot: snapshot?.name };
        setMade(await call<Made>("POST", path("fork"), wanted));
      },
    });
  return (
    <>
      <h1>Snapshots</h1>
      <form
        class="toolbar"
        onSubmit={(event) => {
          event.preventDefault();
          take();
        }}
      >
        <input
          required
          placeholder="Name of the snapshot"
          aria-label="Name of the snapshot"
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <button type="submit" class="primary">
          Take a snapshot
        </button>
        <span class="grow" />
        <button type="button" onClick={() => fork()}>
          Fork as it is now
        </button>
      </form>
      {view}
      <Failure error={page.error ?? error} />
      {made && <Forked made={made} />}
      <Panel title={`Snapshots of ${name}`}>
        <Table
          empty={page.value ? "There is no snapshot." : "Reading…"}
          rows={page.value?.snapshots ?? []}
          id={(one) => one.name}
          columns={[
            { name: "Snapshot", cell: (one) => one.name },
            { name: "Taken", class: "time", cell: (one) => time(one.created) },
            { name: "Entities", isNumber: true, cell: (one) => count(one.entities) },
            { name: "Messages", isNumber: true, cell: (one) => count(one.messages) },
            { name: "Size", isNumber: true, cell: (one) => bytes(one.bytes) },
            {
              name: "Actions",
              isNameless: true,
              class: "number",
              cell: (one) => (
                <>
                  <button type="button" class="danger" onClick={() => restore(one)}>
                    Restore
                  </button>{" "}
                  <button type="button" onClick={() => fork(one)}>
                    Fork
                  </button>{" "}
                  <button type="button" class="danger" onClick={() => remove(one)}>
                    Remove
                  </button>
                </>
              ),
            },
          ]}
        />
      </Panel>
    </>
  );
}

/** Its key is shown only now. */
function Forked({ made }: { made: Made }) {
  const connection = made["connection-string"];
  return (
    <Panel title={`The namespace ${made.name} is made`}>
      <p>
        <a href={link([], {}, made.name)}>Go to {made.name}</a>
      </p>
      {connection && (
        <div class="toolbar">
          <code class="long">{connection}</code>
          <Copy label="Copy the connection string" text={connection} />
        </div>
      )}
      {connection && <p class="note">The key is not shown again.</p>}
    </Panel>
  );
}
