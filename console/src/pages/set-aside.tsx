// Messages that no receiver gets by itself: scheduled ones by the time when they are due, and deferred ones.
import { useState } from "preact/hooks";
import { type Message, type Session, entityPath, get } from "../api";
import { useData } from "../data";
import { count, time } from "../format";
import { link } from "../route";
import { Panel, useAsk } from "../ui";
import { MessageTable } from "./message-table";
import { OpenMessage } from "./open-message";

/** Scheduled messages on a timeline at most. */
const MARKS = 200;
/** Deferred messages that are shown; their page has all. */
const ROWS = 10;

interface Page {
  messages: Message[];
}

export function Timeline({ path, scheduled }: { path: string; scheduled: number }) {
  const page = useData<Page>(
    (signal) => get(entityPath(path, `/messages?part=scheduled&count=${MARKS}&body=0`), signal),
    [path, scheduled],
  );
  const due = (page.value?.messages ?? []).map((message) => ({
    number: message["sequence-number"],
    id: message["message-id"],
    at: Date.parse(message["scheduled-enqueue-time"] ?? ""),
  }));
  const times = due.map((one) => one.at).filter((at) => !Number.isNaN(at));
  if (times.length === 0) return null;
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const place = (at: number) => (last === first ? 50 : 2 + ((at - first) / (last - first)) * 96);
  const when = (at: number) => time(new Date(at).toISOString());
  return (
    <Panel
      title={scheduled > due.length ? `The first ${count(due.length)} of ${count(scheduled)} scheduled messages` : "Scheduled messages"}
      aside={<a href={link(["entity", path, "messages"], { part: "scheduled" })}>All</a>}
    >
      <div class="timeline" role="img" aria-label={`${count(due.length)} scheduled messages from ${when(first)} to ${when(last)}`}>
        {due.map((one) => (
          <span key={one.number} style={{ left: `${place(one.at)}%` }} title={`#${one.number}, ${when(one.at)}`} />
        ))}
      </div>
      <div class="ends">
        <span>{when(first)}</span>
        <span>{when(last)}</span>
      </div>
    </Panel>
  );
}

export function Deferred({ session, path, deferred }: { session: Session; path: string; deferred: number }) {
  const page = useData<Page>(
    (signal) => get(entityPath(path, `/messages?part=deferred&count=${ROWS}&body=120`), signal),
    [path, deferred],
  );
  const [open, setOpen] = useState<number | null>(null);
  const { say, view } = useAsk();
  return (
    <Panel
      title={`Deferred messages (${count(deferred)})`}
      aside={<a href={link(["entity", path, "messages"], { part: "deferred" })}>All</a>}
    >
      {view}
      <MessageTable messages={page.value?.messages ?? []} open={setOpen} />
      {open !== null && (
        <OpenMessage
          session={session}
          path={path}
          part="deferred"
          number={open}
          close={() => setOpen(null)}
          done={(said) => {
            setOpen(null);
            say(said);
          }}
        />
      )}
    </Panel>
  );
}
