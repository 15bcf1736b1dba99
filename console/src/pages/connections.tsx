// The AMQP connections: clients, their links and errors. One can be closed.
import { useState } from "preact/hooks";
import { call, get } from "../api";
import { useData } from "../data";
import { age, count, many, time } from "../format";
import { go, link } from "../route";
import { Pager, Table } from "../table";
import { Badge, Count, Dialog, Failure, Panel, useAsk } from "../ui";

interface Link {
  link: number;
  name: string;
  address: string | null;
  role: "sender" | "receiver";
  credit: number;
  unsettled: number;
}

/** A connection that does not answer in time says nothing of its client. */
interface Connection {
  id: number;
  peer: string;
  tls: boolean;
  since: string;
  "container-id"?: string;
  clients?: string[];
  links?: Link[];
  "link-count"?: number;
  errors?: number;
  "last-error"?: { time: string; condition: string; text: string };
}

interface Page {
  connections: Connection[];
  total: number;
  next: number | null;
}

/** Addresses in a row; the others are in the connection's dialog. */
const ADDRESSES = 3;

function addresses(connection: Connection): string {
  const all = new Set(connection.links?.map((link) => link.address ?? "").filter(Boolean));
  const left = all.size - ADDRESSES;
  return [...all].slice(0, ADDRESSES).join(", ") + (left > 0 ? ` and ${left} more` : "");
}

function unsettled(connection: Connection): number {
  return connection.links?.reduce((sum, link) => sum + link.unsettled, 0) ?? 0;
}

export function Connections({ parameters }: { parameters: URLSearchParams }) {
  const from = parameters.get("from") ?? "0";
  const page = useData<Page>((signal) => get(`connections?from=${encodeURIComponent(from)}`, signal), [from], true);
  const [open, setOpen] = useState<number | null>(null);
  const { ask, view } = useAsk();
  const close = (connection: Connection) =>
    ask({
      title: `Close connection ${connection.id}`,
      text: `The client at ${connection.peer} gets amqp:connection:forced, and ${many(connection["link-count"] ?? 0, "link")} of it end. Messages that it has locked are available again once their locks end. The SDKs connect again by themselves.`,
      action: "Close the connection",
      run: async () => {
        await call("DELETE", `connections/${connection.id}`);
        setOpen(null);
        return `Connection ${connection.id} is being closed.`;
      },
    });
  const opened = page.value?.connections.find((connection) => connection.id === open);
  return (
    <>
      <h1>Connections</h1>
      {view}
      <Failure error={page.error} />
      <Panel title={many(page.value?.total ?? 0, "AMQP connection")}>
        <Table
          empty={page.value ? "No client is connected by AMQP." : "Reading…"}
          rows={page.value?.connections ?? []}
          id={(connection) => connection.id}
          columns={[
            {
              name: "Connection",
              cell: (connection) => (
                <button type="button" class="quiet link" onClick={() => setOpen(connection.id)}>
                  {connection.id}
                </button>
              ),
            },
            {
              name: "Client",
              class: "cut",
              cell: (connection) => (
                <>
                  {connection.clients?.join(", ") || "anonymous"}
                  <br />
                  <span class="note">{connection["container-id"] ?? "does not answer"}</span>
                </>
              ),
            },
            {
              name: "Peer",
              class: "time",
              cell: (connection) => (
                <>
                  {connection.peer} {connection.tls && <Badge text="TLS" tone="good" />}
                </>
              ),
            },
            { name: "Open for", class: "time", cell: (connection) => age(Date.now() - Date.parse(connection.since)) },
            { name: "Addresses", class: "cut", cell: addresses },
            { name: "Links", isNumber: true, cell: (connection) => <Count value={connection["link-count"] ?? 0} /> },
            { name: "Unsettled", isNumber: true, cell: (connection) => <Count value={unsettled(connection)} /> },
            { name: "Errors", isNumber: true, cell: (connection) => <Count value={connection.errors ?? 0} tone="warn" /> },
            {
              name: "Actions",
              isNameless: true,
              class: "number",
              cell: (connection) => (
                <button type="button" class="danger" onClick={() => close(connection)}>
                  Close
                </button>
              ),
            },
          ]}
        />
        <Pager
          isFirst={from === "0"}
          next={page.value?.next}
          show={(from) => go(link(["connections"], { from }))}
        />
      </Panel>
      {opened && <Opened connection={opened} close={() => setOpen(null)} />}
    </>
  );
}

function Opened({ connection, close }: { connection: Connection; close: () => void }) {
  const error = connection["last-error"];
  const links = connection.links ?? [];
  const left = (connection["link-count"] ?? 0) - links.length;
  return (
    <Dialog title={`Connection ${connection.id} of ${connection.peer}`} wide close={close}>
      <dl class="facts">
        <div>
          <dt>container</dt>
          <dd>{connection["container-id"]}</dd>
        </div>
        <div>
          <dt>open since</dt>
          <dd>{time(connection.since)}</dd>
        </div>
        {error && (
          <div>
            <dt>last error</dt>
            <dd>
              {time(error.time)} <code>{error.condition}</code> {error.text}
            </dd>
          </div>
        )}
      </dl>
      <h3>Links</h3>
      <Table
        empty="It has no link."
        rows={links}
        id={(link) => link.link}
        columns={[
          { name: "Address", class: "cut wide", cell: (one) => one.address ?? "transactions" },
          { name: "Role", cell: (one) => one.role },
          { name: "Name", class: "cut", cell: (one) => one.name },
          { name: "Credit", isNumber: true, cell: (one) => count(one.credit) },
          { name: "Unsettled", isNumber: true, cell: (one) => <Count value={one.unsettled} /> },
        ]}
      />
      {left > 0 && <p class="note">{many(left, "more link")}.</p>}
    </Dialog>
  );
}
