// What has happened to messages: of one message id, of a sequence number in an entity, of a session, of an entity, or
// the last events of the namespace.
import { useState } from "preact/hooks";
import { get, namespacePath, queryText } from "../api";
import { useData } from "../data";
import { time } from "../format";
import { go, link } from "../route";
import { Table } from "../table";
import { Failure, Panel } from "../ui";

interface Event {
  at: string | null;
  entity: string;
  "sequence-number"?: number;
  code: string;
  text: string;
}

interface History {
  recorded: boolean;
  since?: string | null;
  complete: boolean;
  more: boolean;
  events: Event[];
}

const FIELDS = { id: "Message id", entity: "Entity", sequence: "Sequence number", session: "Session id" };

type Asked = Record<keyof typeof FIELDS, string>;

const NOTHING: Asked = { id: "", entity: "", sequence: "", session: "" };

function request(name: string, asked: Asked): string {
  const { id, ...others } = asked;
  const query = new URLSearchParams(Object.entries(others).filter(([, value]) => value));
  const below = id ? `messages/${encodeURIComponent(id)}/history` : "history";
  return namespacePath(name, `${below}?${queryText(query)}`);
}

export function Lineage({ name, parameters }: { name: string; parameters: URLSearchParams }) {
  const asked = { ...NOTHING };
  for (const field of Object.keys(NOTHING) as (keyof Asked)[]) asked[field] = parameters.get(field) ?? "";
  const path = request(name, asked);
  const [typed, setTyped] = useState(asked);
  const page = useData<History>((signal) => get(path, signal), [path]);
  const history = page.error ? null : page.value;
  return (
    <>
      <h1>Lineage</h1>
      <form
        class="toolbar"
        onSubmit={(event) => {
          event.preventDefault();
          const next = link(["lineage"], typed);
          if (next === location.hash) page.reload();
          else go(next);
        }}
      >
        {(Object.keys(FIELDS) as (keyof Asked)[]).map((field) => (
          <input
            key={field}
            placeholder={FIELDS[field]}
            aria-label={FIELDS[field]}
            value={typed[field]}
            onInput={(event) => setTyped({ ...typed, [field]: event.currentTarget.value })}
          />
        ))}
        <button type="submit" class="primary">
          Show
        </button>
      </form>
      <Failure error={page.error} />
      {history && !history.recorded && (
        <p class="empty">
          Nothing is recorded of this namespace. <code>railbus namespace create NAME --lineage true</code> makes one with
          a record, and <code>lineage = true</code> in railbus.toml records all of them.
        </p>
      )}
      {history?.recorded && (
        <Panel title="What has happened">
          <Table
            empty="The record has nothing of it."
            rows={history.events.map((event, at) => ({ ...event, row: at }))}
            id={(event) => event.row}
            columns={[
              { name: "Time", class: "time", cell: (event) => time(event.at ?? undefined) },
              { name: "Message", cell: (event) => <Place event={event} /> },
              { name: "Event", cell: (event) => event.text },
              { name: "Code", cell: (event) => <code>{event.code}</code> },
            ]}
          />
          <p class="note">
            Recorded since {time(history.since ?? undefined)}.{history.more && " There are earlier events than these."}
            {!history.complete && " The beginning of a message is not in the record."}
          </p>
        </Panel>
      )}
    </>
  );
}

/** Leads to the history of the message alone. */
function Place({ event }: { event: Event }) {
  const number = event["sequence-number"];
  if (number === undefined) return <>{event.entity}</>;
  return (
    <a href={link(["lineage"], { entity: event.entity, sequence: String(number) })}>
      {event.entity} #{number}
    </a>
  );
}
