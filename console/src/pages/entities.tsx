// The table of all entities, sorted, filtered and paged by the broker, with live counts.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Counts, type Session, get, queryText } from "../api";
import { useData } from "../data";
import { age, bytes, count } from "../format";
import { go, link } from "../route";
import { Badge, Count, Empty, Failure, Panel } from "../ui";
import { NewEntity } from "./new-entity";

const ROWS = 50;

const COLUMNS: { name: string; sort: string; isNumber?: boolean }[] = [
  { name: "Entity", sort: "path" },
  { name: "Active", sort: "active", isNumber: true },
  { name: "Dead letters", sort: "dead-letter", isNumber: true },
  { name: "Scheduled", sort: "scheduled", isNumber: true },
  { name: "Deferred", sort: "deferred", isNumber: true },
  { name: "Size", sort: "bytes", isNumber: true },
  { name: "Oldest", sort: "oldest-age", isNumber: true },
  { name: "Receivers", sort: "receivers", isNumber: true },
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
        {session.manage && (
          <button type="button" class="primary" onClick={() => setNew(true)}>
            New entity
          </button>
        )}
      </div>
      <Failure error={page.error} />
      <Panel title={`${count(total)} ${total === 1 ? "entity" : "entities"}`}>
        {page.value && total === 0 ? (
          <Empty>No entity fits.</Empty>
        ) : (
          <div class="scroll">
            <table>
              <thead>
                <tr>
                  {COLUMNS.map((column) => (
                    <Heading key={column.sort} column={column} sort={sort} order={order} show={show} />
                  ))}
                </tr>
              </thead>
              <tbody>{page.value?.entities.map((entity) => <Row key={entity.path} entity={entity} />)}</tbody>
            </table>
          </div>
        )}
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

function Heading(props: {
  column: { name: string; sort: string; isNumber?: boolean };
  sort: string;
  order: string;
  show: (changes: Record<string, string>) => void;
}) {
  const { column, sort, order } = props;
  const isSorted = column.sort === sort;
  // Names are read from the start, and numbers from the largest.
  const first = column.isNumber ? "descending" : "ascending";
  const other = order === "ascending" ? "descending" : "ascending";
  return (
    <th
      scope="col"
      class={column.isNumber ? "number" : ""}
      aria-sort={isSorted ? (order as "ascending" | "descending") : undefined}
    >
      <button
        type="button"
        class="quiet"
        onClick={() => props.show({ sort: column.sort, order: isSorted ? other : first })}
      >
        {column.name}
        <span aria-hidden="true">{isSorted ? (order === "ascending" ? " ▲" : " ▼") : ""}</span>
      </button>
    </th>
  );
}

function Row({ entity }: { entity: Counts }) {
  return (
    <tr>
      <td>
        <a href={link(["entity", entity.path])}>{entity.path}</a> <Badge text={entity.kind} />
        {entity.status !== "active" && <Badge text={entity.status} tone="warn" />}
      </td>
      <td class="number">
        <Count value={entity.active} />
      </td>
      <td class="number">
        <Count value={entity["dead-letter"]} tone="warn" />
      </td>
      <td class="number">
        <Count value={entity.scheduled} />
      </td>
      <td class="number">
        <Count value={entity.deferred} />
      </td>
      <td class="number">{bytes(entity.bytes)}</td>
      <td class="number">{age(entity["oldest-age-ms"])}</td>
      <td class="number">
        <Count value={entity.receivers} />
      </td>
    </tr>
  );
}
