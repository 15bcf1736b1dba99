// A table: its columns say what a row shows.
import type { ComponentChildren } from "preact";
import { Empty } from "./ui";

export interface Column<Row> {
  name: string;
  cell: (row: Row) => ComponentChildren;
  isNumber?: boolean;
  /** A column of actions needs no heading that is seen. */
  isNameless?: boolean;
  class?: string;
  /** What the rows are asked to be sorted by. */
  sort?: string;
}

export interface Order {
  sort: string;
  order: string;
  show: (changes: { sort: string; order: string }) => void;
}

interface Props<Row> {
  columns: Column<Row>[];
  rows: Row[];
  id: (row: Row) => string | number;
  /** What is said if there is no row. */
  empty?: ComponentChildren;
  order?: Order;
}

export function Table<Row>({ columns, rows, id, empty, order }: Props<Row>) {
  if (rows.length === 0 && empty !== undefined) return <Empty>{empty}</Empty>;
  const classes = (column: Column<Row>) => `${column.isNumber ? "number" : ""} ${column.class ?? ""}`.trim();
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading key={column.name} column={column} order={order} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={id(row)}>
              {columns.map((column) => (
                <td key={column.name} class={classes(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Heading<Row>({ column, order }: { column: Column<Row>; order?: Order }) {
  const { name, sort, isNumber } = column;
  const isSorted = order !== undefined && sort === order.sort;
  const sorted = isSorted ? (order.order as "ascending" | "descending") : undefined;
  const show = () => {
    // Names are read from the start, and numbers from the largest.
    const first = isNumber ? "descending" : "ascending";
    const other = sorted === "ascending" ? "descending" : "ascending";
    order?.show({ sort: sort ?? "", order: isSorted ? other : first });
  };
  return (
    <th scope="col" class={isNumber ? "number" : ""} aria-sort={sorted}>
      {order && sort ? (
        <button type="button" class="quiet" onClick={show}>
          {name}
          <span aria-hidden="true">{sorted ? (sorted === "ascending" ? " ▲" : " ▼") : ""}</span>
        </button>
      ) : (
        <span class={column.isNameless ? "hidden" : ""}>{name}</span>
      )}
    </th>
  );
}

/** Leads to the first page and to the next one. */
export function Pager(props: { isFirst: boolean; next: number | null | undefined; show: (from?: string) => void }) {
  const { isFirst, next, show } = props;
  return (
    <footer class="pager">
      <button type="button" disabled={isFirst} onClick={() => show()}>
        First
      </button>
      <button type="button" disabled={!next} onClick={() => show(String(next))}>
        Next
      </button>
    </footer>
  );
}
