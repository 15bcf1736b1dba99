// Messages of a queue or subscription: browsed by page, searched, opened, and acted on.
import { useState } from "preact/hooks";
import { type Counts, type Message, type Session, call, countPurge, entityPath, get, queryText } from "../api";
import { useData } from "../data";
import { count, many } from "../format";
import { go, link } from "../route";
import { Pager } from "../table";
import { Failure, Panel, useAsk } from "../ui";
import { MessageTable } from "./message-table";
import { OpenMessage } from "./open-message";

const ROWS = 50;
/** Bytes of a body that a row shows. */
const PREVIEW = 120;

const PARTS = ["active", "scheduled", "deferred", "dead-letter", "transfer-dead-letter"] as const;

interface Found {
  messages: Message[];
  next: number | null;
}

/** A page of messages. The broker looks at a bounded number at a time: goes on until one fits. */
async function search(path: string, query: URLSearchParams, signal: AbortSignal): Promise<Found> {
  const asked = new URLSearchParams(query);
  for (;;) {
    const found = await get<Found>(entityPath(path, `/messages?${queryText(asked)}`), signal);
    if (found.messages.length > 0 || found.next === null) return found;
    asked.set("from", String(found.next));
  }
}

interface Props {
  session: Session;
  path: string;
  counts: Counts;
  parameters: URLSearchParams;
}

export function Messages({ session, path, counts, parameters }: Props) {
  const part = PARTS.find((part) => part === parameters.get("part")) ?? "active";
  const filter = parameters.get("filter") ?? "";
  const from = parameters.get("from") ?? "1";
  const [typed, setTyped] = useState(filter);
  const [open, setOpen] = useState<number | null>(null);
  const { ask, say, view } = useAsk();
  const query = new URLSearchParams({ part, from, count: String(ROWS), body: String(PREVIEW) });
  if (filter) query.set("filter", filter);
  const page = useData<Found>(
    (signal) => search(path, query, signal),
    [path, query.toString()],
    from === "1" && !filter,
  );
  const show = (changes: Record<string, string>) => {
    go(link(["entity", path, "messages"], { part, filter, ...changes }));
  };
  const done = (said: string) => {
    setOpen(null);
    say(said);
    page.reload();
  };
  const purge = async () => {
    try {
      const limit = filter ? await countPurge(path, part, filter) : counts[part];
      if (limit === 0) return say(filter ? "No message fits." : `There are no ${part} messages.`);
      const which = `${many(limit, `${part} message`)}${filter ? " that fit the filter" : ""}`;
      ask({
        title: `Delete messages of ${path}`,
        text: `This deletes ${which} of ${path}. It cannot be undone.`,
        action: "Delete",
        run: async () => {
          const body = { part, limit, ...(filter ? { filter } : {}) };
          const answer = await call<{ purged: number; kept: number }>("POST", entityPath(path, "/purge"), body);
          page.reload();
          return `${many(answer.purged, "message")} deleted, ${count(answer.kept)} stayed.`;
        },
      });
    } catch (error) {
      say((error as Error).message);
    }
  };
  return (
    <>
      <form
        class="toolbar"
        onSubmit={(event) => {
          event.preventDefault();
          show({ filter: typed });
        }}
      >
        <select aria-label="Part" value={part} onChange={(event) => show({ part: event.currentTarget.value })}>
          {PARTS.map((part) => (
            <option key={part} value={part}>
              {`${part} (${count(counts[part])})`}
            </option>
          ))}
        </select>
        <input
          type="search"
          class="grow"
          placeholder="Filter: sys.MessageId = 'a' OR color = 'red'"
          aria-label="Filter in SQL"
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <button type="submit">Search</button>
        {session.manage && (
          <button type="button" class="danger" onClick={() => void purge()}>
            Delete all
          </button>
        )}
      </form>
      {view}
      <Failure error={page.error} />
      <Panel title="Messages">
        <MessageTable
          messages={page.value?.messages ?? []}
          empty={page.value ? (filter ? "No message fits." : `There are no ${part} messages.`) : filter && "Searching…"}
          open={setOpen}
        />
        <Pager
          isFirst={from === "1"}
          next={page.value && (page.value.messages.length === ROWS || filter) ? page.value.next : null}
          show={(from) => show(from ? { from } : {})}
        />
      </Panel>
      {open !== null && (
        <OpenMessage session={session} path={path} part={part} number={open} close={() => setOpen(null)} done={done} />
      )}
    </>
  );
}
