// The receivers of a queue or subscription, what they have locked, and its sessions.
import { type Session, entityPath, get } from "../api";
import { useData } from "../data";
import { age, count } from "../format";
import { link } from "../route";
import { Table } from "../table";
import { Badge, Count, Failure, Panel } from "../ui";
import { type MessageSession, AllSessions, SessionTable } from "./message-sessions";

interface Receiver {
  connection: number;
  link: number;
  part: string;
  mode: string;
  credit: number;
  blocked: boolean;
  session: string | null;
  "waits-for-session": boolean;
}

interface Lock {
  "sequence-number": number;
  part: string;
  connection: number;
  link: number | null;
  "left-ms": number | null;
  "delivery-count": number;
}

interface List<Row> {
  first: Row[];
  total: number;
}

interface Activity {
  receivers: List<Receiver>;
  locks: List<Lock>;
  sessions: List<MessageSession>;
}

/** A heading with the number of all rows, and of those that are shown if they are fewer. */
function title(name: string, list: List<unknown>): string {
  const shown = list.first.length;
  return `${name} (${count(list.total)}${shown < list.total ? `, of which ${count(shown)} are shown` : ""})`;
}

export function Receivers({ session, path, hasSessions }: { session: Session; path: string; hasSessions: boolean }) {
  const page = useData<Activity>((signal) => get(entityPath(path, "/receivers"), signal), [path], true);
  const connection = (id: number) =>
    session.manage && !session["entities-only"] ? <a href={link(["connections"], { from: String(id) })}>{id}</a> : id;
  if (!page.value) return <Failure error={page.error} />;
  const { receivers, locks, sessions } = page.value;
  return (
    <>
      <Failure error={page.error} />
      <Panel title={title("Receivers", receivers)}>
        <Table
          empty="No receiver is attached."
          rows={receivers.first}
          id={(one) => `${one.connection} ${one.link}`}
          columns={[
            { name: "Connection", cell: (one) => connection(one.connection) },
            { name: "Mode", cell: (one) => one.mode },
            { name: "Of", cell: (one) => `${one.part} messages` },
            { name: "Session", class: "cut", cell: (one) => one.session ?? (one["waits-for-session"] ? "waits for one" : "") },
            { name: "Credit", isNumber: true, cell: (one) => <Count value={one.credit} /> },
            { name: "State", cell: (one) => one.blocked && <Badge text="does not read" tone="warn" /> },
          ]}
        />
      </Panel>
      {locks.total > 0 && (
        <Panel title={title("Locked messages", locks)}>
          <Table
            rows={locks.first}
            id={(one) => `${one.part} ${one["sequence-number"]}`}
            columns={[
              { name: "Number", isNumber: true, cell: (one) => one["sequence-number"] },
              { name: "Of", cell: (one) => `${one.part} messages` },
              { name: "Connection", cell: (one) => connection(one.connection) },
              { name: "Deliveries", isNumber: true, cell: (one) => count(one["delivery-count"]) },
              {
                name: "Lock ends in",
                isNumber: true,
                cell: (one) => (one["left-ms"] === null ? (hasSessions ? "with its session" : "with its receiver") : age(one["left-ms"])),
              },
            ]}
          />
        </Panel>
      )}
      {hasSessions && (
        <>
          <Panel title={title("Sessions", sessions)}>
            <SessionTable path={path} rows={sessions.first} empty="No session is held or has messages." connection={connection} />
          </Panel>
          <AllSessions path={path} connection={connection} />
        </>
      )}
    </>
  );
}
