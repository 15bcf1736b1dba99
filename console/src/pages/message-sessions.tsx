// The sessions of a queue or subscription: the holder of each, and its state, be it held or not.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { entityPath, get } from "../api";
import { BodyView } from "../body-view";
import { useData } from "../data";
import { age, bytes } from "../format";
import { Pager, Table } from "../table";
import { Count, Dialog, Failure, Panel } from "../ui";

/** Sessions of a page. */
const ROWS = 100;

export interface MessageSession {
  id: string;
  hold: { connection: number; link: number; "left-ms": number; locked: number; "state-bytes": number | null } | null;
}

interface State extends MessageSession {
  /** Null if there is none. */
  state?: string | null;
  "state-base64"?: string;
  "state-bytes"?: number;
  "state-start"?: string;
}

interface Props {
  path: string;
  /** A link to a connection by its number. */
  connection: (id: number) => ComponentChildren;
}

export function SessionTable({ path, connection, rows, empty }: Props & { rows: MessageSession[]; empty: ComponentChildren }) {
  const [open, setOpen] = useState<string | null>(null);
  return (
    <>
      <Table
        empty={empty}
        rows={rows}
        id={(one) => one.id}
        columns={[
          { name: "Session", class: "cut", cell: (one) => one.id },
          { name: "Holder", cell: ({ hold }) => (hold ? connection(hold.connection) : "none") },
          { name: "Locked messages", isNumber: true, cell: ({ hold }) => hold && <Count value={hold.locked} /> },
          { name: "Lock ends in", isNumber: true, cell: ({ hold }) => hold && age(hold["left-ms"]) },
          { name: "State", isNumber: true, cell: ({ hold }) => hold && hold["state-bytes"] !== null && bytes(hold["state-bytes"]) },
          {
            name: "Actions",
            isNameless: true,
            cell: (one) => (
              <button type="button" class="quiet" aria-label={`Show the state of ${one.id}`} onClick={() => setOpen(one.id)}>
                Show
              </button>
            ),
          },
        ]}
      />
      {open !== null && <SessionState path={path} id={open} close={() => setOpen(null)} />}
    </>
  );
}

/** Sessions that have messages or a state, by page, once the reader asks for them. */
export function AllSessions({ path, connection }: Props) {
  const [skip, setSkip] = useState<number | null>(null);
  return (
    <Panel
      title="Sessions with messages or a state"
      aside={
        <button type="button" onClick={() => setSkip(skip === null ? 0 : null)}>
          {skip === null ? "Show" : "Hide"}
        </button>
      }
    >
      {skip === null ? (
        <p class="note">Also those that are not held and have no messages.</p>
      ) : (
        <SessionPage path={path} connection={connection} skip={skip} show={setSkip} />
      )}
    </Panel>
  );
}

function SessionPage({ path, connection, skip, show }: Props & { skip: number; show: (skip: number) => void }) {
  const page = useData<{ sessions: MessageSession[]; next: number | null }>(
    (signal) => get(entityPath(path, `/message-sessions?skip=${skip}&count=${ROWS}`), signal),
    [path, skip],
  );
  const rows = page.value?.sessions ?? [];
  return (
    <>
      <Failure error={page.error} />
      <SessionTable path={path} rows={rows} empty={page.value && "There is none."} connection={connection} />
      <Pager
        isFirst={skip === 0}
        next={rows.length === ROWS ? page.value?.next : null}
        show={(from) => show(from ? Number(from) : 0)}
      />
    </>
  );
}

function SessionState({ path, id, close }: { path: string; id: string; close: () => void }) {
  const page = useData<State>(
    (signal) => get(entityPath(path, `/session-state?session=${encodeURIComponent(id)}`), signal),
    [path, id],
  );
  const shown = page.value;
  return (
    <Dialog title={`Session ${id}`} wide close={close}>
      <Failure error={page.error} />
      {shown && (
        <p class="note">
          {shown.hold ? `It is held by the connection ${shown.hold.connection}.` : "It is not held."}
        </p>
      )}
      {shown?.state === null && <p class="empty">It has no state.</p>}
      {shown && shown.state !== null && (
        <BodyView
          name="State"
          of="the session"
          message={{
            body: shown.state,
            "body-base64": shown["state-base64"],
            "body-bytes": shown["state-bytes"],
            "body-start": shown["state-start"],
          }}
        />
      )}
    </Dialog>
  );
}
