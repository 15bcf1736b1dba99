// Dead letters of a queue or subscription, grouped by reason: redriven or deleted, all or some.
import { useState } from "preact/hooks";
import { type Counts, type Message, type Session, call, countPurge, entityPath, get, literal, queryText } from "../api";
import { useData } from "../data";
import { count, many } from "../format";
import { go, link } from "../route";
import { Pager, Table } from "../table";
import { Failure, Panel, useAsk } from "../ui";
import { MessageTable } from "./message-table";
import { OpenMessage } from "./open-message";
import { redriveAll, useRun } from "./redrive";

const PART = "dead-letter";
const ROWS = 50;

interface Group {
  reason: string | null;
  description: string;
  count: number;
  first: number;
  last: number;
}

interface Props {
  session: Session;
  path: string;
  counts: Counts;
  parameters: URLSearchParams;
}

/** A condition that is true of the dead letters of a reason. */
function condition(reason: string | null): string {
  return reason === null ? "DeadLetterReason IS NULL" : `DeadLetterReason = ${literal(reason)}`;
}

export function DeadLetters({ session, path, counts, parameters }: Props) {
  const filter = parameters.get("filter") ?? "";
  const from = parameters.get("from") ?? "1";
  const dead = counts["dead-letter"];
  const groups = useData<{ reasons: Group[]; others: number; examined: number; complete: boolean }>(
    (signal) => get(entityPath(path, "/reasons"), signal),
    [path, dead],
  );
  const query = new URLSearchParams({ part: PART, from, count: String(ROWS), body: "120" });
  if (filter) query.set("filter", filter);
  const page = useData<{ messages: Message[]; next: number | null }>(
    (signal) => get(entityPath(path, `/messages?${queryText(query)}`), signal),
    [path, query.toString(), dead],
  );
  const [open, setOpen] = useState<number | null>(null);
  const { ask, say, view } = useAsk();
  const show = (changes: Record<string, string>) => go(link(["entity", path, "dead-letters"], { filter, ...changes }));
  const remove = async (filter: string, what: string) => {
    try {
      const limit = await countPurge(path, PART, filter);
      if (limit === 0) return say("No dead letter of this reason is left.");
      ask({
        title: `Delete ${what}`,
        text: `This deletes ${many(limit, "dead letter")} of ${path}. It cannot be undone.`,
        action: "Delete",
        run: async () => {
          const answer = await call<{ purged: number }>("POST", entityPath(path, "/purge"), { part: PART, filter, limit });
          return `${many(answer.purged, "dead letter")} deleted.`;
        },
      });
    } catch (error) {
      say((error as Error).message);
    }
  };
  return (
    <>
      {view}
      <Panel title="Reasons">
        <Failure error={groups.error} />
        {groups.value && !groups.value.complete && (
          <p class="note">Of the oldest {count(groups.value.examined)} dead letters.</p>
        )}
        {groups.value && groups.value.others > 0 && (
          <p class="note">{many(groups.value.others, "more dead letter")} of further reasons.</p>
        )}
        <Table
          empty={groups.value && "There are no dead letters."}
          rows={groups.value?.reasons ?? []}
          id={(group) => group.reason ?? ""}
          columns={[
            {
              name: "Reason",
              class: "cut",
              cell: (group) => (
                <button type="button" class="quiet link" onClick={() => show({ filter: condition(group.reason) })}>
                  {group.reason ?? "no reason"}
                </button>
              ),
            },
            { name: "Description of the first", class: "cut wide", cell: (group) => group.description },
            { name: "Messages", isNumber: true, cell: (group) => count(group.count) },
            {
              name: "Actions",
              isNameless: true,
              class: "number",
              cell: (group) =>
                session.manage && (
                  <button
                    type="button"
                    class="danger"
                    onClick={() => void remove(condition(group.reason), group.reason ?? "no reason")}
                  >
                    Delete
                  </button>
                ),
            },
          ]}
        />
      </Panel>
      {session.manage && dead > 0 && <Redrive path={path} filter={filter} dead={dead} show={show} say={say} />}
      <Panel title={filter ? "Dead letters that fit the filter" : "Dead letters"}>
        <Failure error={page.error} />
        <MessageTable messages={page.value?.messages ?? []} open={setOpen} />
        <Pager isFirst={from === "1"} next={page.value?.next} show={(from) => show(from ? { from } : {})} />
      </Panel>
      {open !== null && (
        <OpenMessage
          session={session}
          path={path}
          part={PART}
          number={open}
          close={() => setOpen(null)}
          done={(said) => {
            setOpen(null);
            say(said);
          }}
        />
      )}
    </>
  );
}

/** Moves dead letters back to their entity; the run can be cancelled, also once the page was left meanwhile. */
function Redrive(props: {
  path: string;
  filter: string;
  dead: number;
  show: (changes: Record<string, string>) => void;
  say: (said: string) => void;
}) {
  const { path, dead, say } = props;
  const [filter, setFilter] = useState(props.filter);
  const [before, setBefore] = useState(props.filter);
  const [rate, setRate] = useState("");
  const run = useRun(path);
  const [error, setError] = useState<string | null>(null);
  if (before !== props.filter) {
    setBefore(props.filter);
    setFilter(props.filter);
  }
  const request = (isDry: boolean) => ({
    part: PART,
    ...(filter ? { filter } : {}),
    ...(rate && !isDry ? { rate: Number(rate) } : {}),
    ...(isDry ? { "dry-run": true } : {}),
  });
  const dryRun = () => {
    setError(null);
    call<{ selected: number }>("POST", entityPath(path, "/redrive"), request(true))
      .then((answer) => say(`${count(answer.selected)} dead letters would be redriven.`))
      .catch((error: Error) => setError(error.message));
  };
  const redrive = () => {
    setError(null);
    void redriveAll(path, dead, request, { say, fail: setError });
  };
  return (
    <Panel title="Redrive">
      <form
        class="toolbar"
        onSubmit={(event) => {
          event.preventDefault();
          if (!run) redrive();
        }}
      >
        <input
          class="grow"
          aria-label="Filter of the redrive"
          placeholder="Filter; all dead letters without one"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
        <input
          type="number"
          min={1}
          aria-label="Messages a second"
          placeholder="a second"
          value={rate}
          onInput={(event) => setRate(event.currentTarget.value)}
        />
        <button type="button" disabled={run !== undefined} onClick={dryRun}>
          Dry run
        </button>
        {/* With keys they are two elements: the click that cancels would else submit the form again. */}
        {run === undefined ? (
          <button key="start" type="submit" class="primary">
            Redrive
          </button>
        ) : (
          <button key="cancel" type="button" class="danger" onClick={run.cancel}>
            Cancel
          </button>
        )}
      </form>
      {run && (
        // Without a value it says that the messages are being counted.
        <progress
          max={Math.max(run.total ?? 1, 1)}
          value={run.total === null ? undefined : Math.max(run.start - dead, 0)}
          aria-label="Progress of the redrive"
        />
      )}
      <Failure error={error} />
    </Panel>
  );
}
