// The namespaces of the broker, to be chosen from.
import { useState } from "preact/hooks";
import { get } from "../api";
import { useData } from "../data";
import { count, many, time } from "../format";
import { link, namespace as current } from "../route";
import { Table } from "../table";
import { Badge, Failure } from "../ui";

interface Namespace {
  name: string;
  entities: number;
  lineage: boolean | null;
  created: string | null;
  keys: string[];
}

/** Rows at most; the others are found by their names. */
const ROWS = 50;

export const DEFAULT = "default";

/** Begins with the default one, which has no name in an address. */
export function Namespaces({ chosen }: { chosen?: () => void }) {
  const page = useData<{ namespaces: Namespace[] }>((signal) => get("namespaces", signal), []);
  const [search, setSearch] = useState("");
  const all = page.value?.namespaces ?? [];
  const found = all.filter((one) => one.name.includes(search.trim().toLowerCase()));
  const left = found.length - ROWS;
  return (
    <>
      <Failure error={page.error} />
      {all.length > 1 && (
        <input
          type="search"
          placeholder="Search by name"
          aria-label="Search namespaces"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      )}
      <Table
        empty={page.value ? "No namespace fits." : "Reading…"}
        rows={found.slice(0, ROWS)}
        id={(one) => one.name}
        columns={[
          {
            name: "Namespace",
            cell: (one) => (
              <>
                <a href={link([], {}, one.name === DEFAULT ? "" : one.name)} onClick={chosen}>
                  {one.name}
                </a>{" "}
                {one.name === (current || DEFAULT) && <Badge text="here" />}
              </>
            ),
          },
          { name: "Entities", isNumber: true, cell: (one) => count(one.entities) },
          { name: "Lineage", cell: (one) => (one.lineage === null ? "" : one.lineage ? "recorded" : "off") },
          { name: "Created", class: "time", cell: (one) => time(one.created ?? undefined) },
        ]}
      />
      {left > 0 && <p class="note">{many(left, "more namespace")}. Search for one by its name.</p>}
    </>
  );
}
