// Messages that no receiver gets by itself: scheduled ones by the time when they are due, and deferred ones.
import { useRef, useState } from "preact/hooks";
import { type Message, type Session, entityPath, get } from "../api";
import { useData } from "../data";
import { count, time } from "../format";
import { link } from "../route";
import { Failure, Panel, useAsk } from "../ui";
import { MessageTable } from "./message-table";
import { OpenMessage } from "./open-message";

/** Scheduled messages on a timeline at most. */
const MARKS = 200;
/** Answers that are asked for at most: one ends early if its messages are large. */
const ANSWERS = 10;
/** Deferred messages that are shown; their page has all. */
const ROWS = 10;

interface Page {
  messages: Message[];
  next: number | null;
}

interface Due {
  number: number;
  at: number;
}

interface DuePage {
  messages: Message[];
  /** A text, which names the place in the schedule. */
  next: string | null;
}

/** The scheduled messages that are due first. */
async function readSchedule(path: string, signal: AbortSignal): Promise<Due[]> {
  const first: Due[] = [];
  let from = "";
  for (let answer = 0; answer < ANSWERS && first.length < MARKS; answer += 1) {
    const count = MARKS - first.length;
    const place: string = entityPath(path, `/messages?part=scheduled&order=due&count=${count}&body=0${from}`);
    const { messages, next }: DuePage = await get<DuePage>(place, signal);
    for (const message of messages) {
      const at = Date.parse(message["scheduled-enqueue-time"] ?? "");
      if (!Number.isNaN(at)) first.push({ number: message["sequence-number"], at });
    }
    if (next === null) break;
    from = `&from=${next}`;
  }
  return first;
}

export function Timeline({ path, scheduled }: { path: string; scheduled: number }) {
  const last = useRef<{ scheduled: number; schedule: Due[] } | null>(null);
  // With each event, but one read at a time: it may take several answers.
  const page = useData<Due[]>(
    async (signal) => {
      if (last.current?.scheduled === scheduled) return last.current.schedule;
      const schedule = await readSchedule(path, signal);
      last.current = { scheduled, schedule };
      return schedule;
    },
    [path],
    true,
  );
  const due = page.value ?? [];
  const [first, latest] = [due[0]?.at, due.at(-1)?.at];
  if (!page.value || first === undefined || latest === undefined) return <Failure error={page.error} />;
  const place = (at: number) => (latest === first ? 50 : 2 + ((at - first) / (latest - first)) * 96);
  const when = (at: number) => time(new Date(at).toISOString());
  return (
    <Panel
      title={scheduled > due.length ? `The next ${count(due.length)} of ${count(scheduled)} scheduled messages` : "Scheduled messages"}
      aside={<a href={link(["entity", path, "messages"], { part: "scheduled" })}>All</a>}
    >
      <div class="timeline" role="img" aria-label={`${count(due.length)} scheduled messages from ${when(first)} to ${when(latest)}`}>
        {due.map((one) => (
          <span key={one.number} style={{ left: `${place(one.at)}%` }} title={`#${one.number}, ${when(one.at)}`} />
        ))}
      </div>
      <div class="ends">
        <span>{when(first)}</span>
        <span>{when(latest)}</span>
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
