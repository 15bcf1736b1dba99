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
/** Scheduled messages of an answer, and answers that are asked for at most. The broker has them by number, not by time. */
const [ANSWER, ANSWERS] = [1000, 10];
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

/** Those that are due first, of as many as were looked at. */
interface Schedule {
  first: Due[];
  examined: number;
}

async function readSchedule(path: string, signal: AbortSignal): Promise<Schedule> {
  const all: Due[] = [];
  let from: number | null = 1;
  for (let answer = 0; answer < ANSWERS && from !== null; answer += 1) {
    const place: string = entityPath(path, `/messages?part=scheduled&from=${from}&count=${ANSWER}&body=0`);
    const { messages, next }: Page = await get<Page>(place, signal);
    for (const message of messages) {
      all.push({ number: message["sequence-number"], at: Date.parse(message["scheduled-enqueue-time"] ?? "") });
    }
    from = next;
  }
  const first = all.filter(({ at }) => !Number.isNaN(at)).sort((one, other) => one.at - other.at).slice(0, MARKS);
  return { first, examined: all.length };
}

/** What the timeline has of all scheduled messages. */
function title({ first, examined }: Schedule, scheduled: number): string {
  if (scheduled <= first.length) return "Scheduled messages";
  const all = `${count(scheduled)} scheduled messages`;
  return `The next ${count(first.length)} of ${scheduled > examined ? `the oldest ${count(examined)} of ` : ""}${all}`;
}

export function Timeline({ path, scheduled }: { path: string; scheduled: number }) {
  const last = useRef<{ scheduled: number; schedule: Schedule } | null>(null);
  // With each event, but one read at a time: it may take several answers.
  const page = useData<Schedule>(
    async (signal) => {
      if (last.current?.scheduled === scheduled) return last.current.schedule;
      const schedule = await readSchedule(path, signal);
      last.current = { scheduled, schedule };
      return schedule;
    },
    [path],
    true,
  );
  const due = page.value?.first ?? [];
  const [first, latest] = [due[0]?.at, due.at(-1)?.at];
  if (!page.value || first === undefined || latest === undefined) return <Failure error={page.error} />;
  const place = (at: number) => (latest === first ? 50 : 2 + ((at - first) / (latest - first)) * 96);
  const when = (at: number) => time(new Date(at).toISOString());
  return (
    <Panel
      title={title(page.value, scheduled)}
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
