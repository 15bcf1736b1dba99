// The table of all entities, sorted, filtered and paged by the broker, with live counts.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Counts, type Session, get, queryText } from "../api";
import { useData } from "../data";
import { age, bytes, count } from "../format";
import { go, link } from "../route";
import { type Column, Table } from "../table";
import { Badge, Count, Failure, Panel } from "../ui";
import { NewEntity } from "./new-entity";

const ROWS = 50;

const number = (name: string, sort: "active" | "dead-letter" | "scheduled" | "deferred" | "receivers"): Column<Counts> => ({
  name,
  sort,
  isNumber: true,
  cell: (entity) => <Count value={entity[sort]} tone={sort === "dead-letter" ? "warn" : undefined} />,
});

const COLUMNS: Column<Counts>[] = [
  {
    name: "Entity",
    sort: "path",
    cell: (entity) => (
      <>
        <a href={link(["entity", entity.path])}>{entity.path}</a> <Badge text={entity.kind} />
        {entity.status !== "active" && <Badge text={entity.status} tone="warn" />}
      </>
    ),
  },
  number("Active", "active"),
  number("Dead letters", "dead-letter"),
  number("Scheduled", "scheduled"),
  number("Deferred", "deferred"),
  { name: "Size", sort: "bytes", isNumber: true, cell: (entity) => bytes(entity.bytes) },
  { name: "Oldest", sort: "oldest-age", isNumber: true, cell: (entity) => age(entity["oldest-age-ms"]) },
  number("Receivers", "receivers"),
];

export function Entities({ session, parameters }: { session: Session; parameters: URLSearchParams }) {
  const [isNew, setNew] = useState(false);
  const search = parameters.get("search") ?? "";
  const kind = parameters.get("kind") ?? "";
  const sort = parameters.get("sort") ?? "path";
  const order = parameters.get("order") ?? "ascending";
  const skip = Number(parameters.get("skip") ?? 0) || 0;
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (parameters.get("focus") === "search") input.current?.focus();
  }, []);
  const query = new URLSearchParams({ sort, order, skip: String(skip), count: String(ROWS) });
  if (search) query.set("search", search);
  if (kind) query.set("kind", kind);
  const page = useData<{ entities: Counts[]; total: number }>(
    (signal) => get(`counts?${queryText(query)}`, signal),
    [query.toString()],
    true,
  );
  const show = (changes: Record<string, string>) => {
    go(link(["entities"], { search, kind, sort, order, ...changes }));
  };
  const total = page.value?.total ?? 0;
  return (
    <>
      <h1>Entities</h1>
      <div class="toolbar">
        <input
          ref={input}
          type="search"
          placeholder="Search by name"
          aria-label="Search by name"
          value={search}
          onInput={(event) => show({ search: event.currentTarget.value })}
        />
        <select aria-label="Kind" value={kind} onChange={(event) => show({ kind: event.currentTarget.value })}>
          <option value="">All kinds</option>
          <option value="queue">Queues</option>
          <option value="topic">Topics</option>
          <option value="subscription">Subscriptions</option>
        </select>
        <span class="grow" />
        {session.manage && !session["entities-only"] && (
          <button type="button" class="primary" onClick={() => setNew(true)}>
            New entity
          </button>
        )}
      </div>
      <Failure error={page.error} />
      <Panel title={`${count(total)} ${total === 1 ? "entity" : "entities"}`}>
        <Table
          empty={page.value && "No entity fits."}
          rows={page.value?.entities ?? []}
          id={(entity) => entity.path}
          columns={COLUMNS}
          order={{ sort, order, show }}
        />
        <footer class="pager">
          <button type="button" disabled={skip === 0} onClick={() => show({ skip: String(Math.max(skip - ROWS, 0)) })}>
            Back
          </button>
          <span>
            {total === 0 ? "" : `${count(skip + 1)}–${count(Math.min(skip + ROWS, total))} of ${count(total)}`}
          </span>
          <button type="button" disabled={skip + ROWS >= total} onClick={() => show({ skip: String(skip + ROWS) })}>
            Next
          </button>
        </footer>
      </Panel>
      {isNew && <NewEntity close={() => setNew(false)} />}
    </>
  );
}
