// One queue, topic or subscription: its counts, messages, dead letters, rules and settings.
import { useEffect, useState } from "preact/hooks";
import { type Counts, type Json, type Session, call, entityPath, get, subscriptionsOf } from "../api";
import { useData } from "../data";
import { age, bytes, count, many, rate } from "../format";
import { useLive } from "../live";
import { go, link } from "../route";
import { Table } from "../table";
import { Badge, Failure, Figure, Panel, Tabs, useAsk } from "../ui";
import { DeadLetters } from "./dead-letters";
import { Messages } from "./messages";
import { Properties } from "./properties";
import { Receivers } from "./receivers";
import { Deferred, Timeline } from "./set-aside";
import { Why } from "./why";

/** Readings of the counts that rates and lines are made of. */
const READINGS = 120;

interface Props {
  session: Session;
  path: string;
  tab: string;
  parameters: URLSearchParams;
}

export function Entity({ session, path, tab, parameters }: Props) {
  const page = useData<{ entities: Counts[] }>(
    (signal) => get(`counts?path=${encodeURIComponent(path)}`, signal),
    [path],
    true,
  );
  const { ask, say, view } = useAsk();
  const counts = page.value?.entities[0];
  const history = useHistory(counts);
  if (!page.value) return page.error ? <Failure error={page.error} /> : <p class="loading">Reading…</p>;
  if (!counts) return <p class="empty">There is no entity {path}.</p>;
  const isTopic = counts.kind === "topic";
  const address = (tab: string) => link(["entity", path, tab]);
  const tabs = [
    { name: "State", word: "state" },
    ...(isTopic ? [] : [{ name: "Messages", word: "messages", count: counts.active }]),
    ...(isTopic ? [] : [{ name: "Dead letters", word: "dead-letters", count: counts["dead-letter"] }]),
    ...(isTopic ? [] : [{ name: "Why", word: "why" }]),
    { name: "Settings", word: "settings" },
  ];
  const current = tabs.find((one) => one.word === tab) ?? tabs[0]!;
  const remove = async () => {
    try {
      const below = isTopic ? await subscriptionsOf(path) : [];
      const what = isTopic ? `, its ${many(below.length, "subscription")} and everything in them are` : " and everything in it is";
      ask({
        title: `Delete ${path}`,
        text: `The ${counts.kind} ${path}${what} deleted: ${contents([counts, ...below])}. This cannot be undone.`,
        action: "Delete",
        run: async () => {
          await call("DELETE", entityPath(path));
          go(link(["entities"]));
        },
      });
    } catch (error) {
      say((error as Error).message);
    }
  };
  return (
    <>
      <header class="title">
        <h1>{path}</h1>
        <Badge text={counts.kind} />
        {counts.status !== "active" && <Badge text={counts.status} tone="warn" />}
        {counts["requires-session"] && <Badge text="sessions" />}
        <span class="grow" />
        {session.send && counts.kind !== "subscription" && (
          <a class="button" href={link(["send"], { path })}>
            Send
          </a>
        )}
        {session.manage && (
          <button type="button" class="danger" onClick={() => void remove()}>
            Delete
          </button>
        )}
      </header>
      {view}
      <Tabs
        tabs={tabs.map((tab) => ({ ...tab, address: address(tab.word) }))}
        current={current.name}
      />
      <Failure error={page.error} />
      {current.word === "state" && <State session={session} counts={counts} history={history} path={path} />}
      {current.word === "state" && !isTopic && (
        <Receivers session={session} path={path} hasSessions={counts["requires-session"]} />
      )}
      {current.word === "messages" && (
        <Messages session={session} path={path} counts={counts} parameters={parameters} />
      )}
      {current.word === "dead-letters" && (
        <DeadLetters session={session} path={path} counts={counts} parameters={parameters} />
      )}
      {current.word === "why" && <Why key={parameters.toString()} path={path} parameters={parameters} />}
      {current.word === "settings" && <Properties path={path} session={session} />}
    </>
  );
}

/** The messages of all parts of entities, in words. */
function contents(entities: Counts[]): string {
  const sum = (part: "active" | "dead-letter" | "transfer-dead-letter" | "scheduled" | "deferred") =>
    entities.reduce((sum, one) => sum + one[part], 0);
  const dead = sum("dead-letter") + sum("transfer-dead-letter");
  const parts = [many(sum("active"), "active message"), many(dead, "dead letter")];
  for (const part of ["scheduled", "deferred"] as const) {
    if (sum(part) > 0) parts.push(many(sum(part), `${part} message`));
  }
  return parts.join(", ");
}

interface Reading {
  time: number;
  counts: Counts;
}

function useHistory(counts: Counts | undefined): Reading[] {
  const [history, setHistory] = useState<Reading[]>([]);
  useEffect(() => {
    if (counts) setHistory((old) => [...old, { time: Date.now() / 1000, counts }].slice(-READINGS));
  }, [counts]);
  return history;
}

/** The rate of a counter between the readings, one for each second reading. */
function rates(history: Reading[], counter: "arrived" | "completed"): number[] {
  return history.slice(1).map((reading, at) => {
    const before = history[at]!;
    const seconds = Math.max(reading.time - before.time, 0.001);
    return Math.max(reading.counts[counter] - before.counts[counter], 0) / seconds;
  });
}

function State(props: { session: Session; counts: Counts; history: Reading[]; path: string }) {
  const { session, counts, history, path } = props;
  const line = (count: (counts: Counts) => number) => history.map((reading) => count(reading.counts));
  const [arrivals, completions] = [rates(history, "arrived"), rates(history, "completed")];
  return (
    <>
      <div class="figures">
        {counts.kind !== "topic" && (
          <>
            <Figure
              name="Active"
              value={count(counts.active)}
              note={`${count(counts.locked)} locked, oldest ${age(counts["oldest-age-ms"])}`}
              values={line((counts) => counts.active)}
            />
            <Figure
              name="Dead letters"
              value={count(counts["dead-letter"])}
              note={`${count(counts["transfer-dead-letter"])} of failed transfers`}
              tone={counts["dead-letter"] > 0 ? "warn" : ""}
              values={line((counts) => counts["dead-letter"])}
            />
            <Figure name="In, a second" value={rate(arrivals.at(-1) ?? 0)} note={`${count(counts.arrived)} since the start`} values={arrivals} />
            <Figure name="Completed, a second" value={rate(completions.at(-1) ?? 0)} note={`${count(counts.completed)} since the start`} values={completions} />
            <Figure name="Receivers" value={count(counts.receivers)} note={`${count(counts.delivered)} deliveries`} />
          </>
        )}
        <Figure name="Scheduled" value={count(counts.scheduled)} note={`${count(counts.deferred)} deferred`} />
        <Figure name="Size" value={bytes(counts.bytes)} note={`of ${bytes(counts["max-bytes"])}`} />
        <Figure name="Expired" value={count(counts.expired)} note="since the start" />
      </div>
      {counts.kind === "topic" && <Subscriptions topic={path} />}
      {counts.kind === "subscription" && <SubscriptionRules path={path} />}
      {counts.scheduled > 0 && <Timeline path={path} scheduled={counts.scheduled} />}
      {counts.deferred > 0 && <Deferred session={session} path={path} deferred={counts.deferred} />}
    </>
  );
}

function Subscriptions({ topic }: { topic: string }) {
  const { tick } = useLive();
  const page = useData<Counts[]>((signal) => subscriptionsOf(topic, signal), [topic, tick > 0], true);
  const below = page.value ?? [];
  return (
    <Panel title="Subscriptions">
      <Table
        empty="The topic has no subscription, so its messages go nowhere."
        rows={below}
        id={(entity) => entity.path}
        columns={[
          {
            name: "Subscription",
            cell: (entity) => <a href={link(["entity", entity.path])}>{entity.path.split("/").at(-1)}</a>,
          },
          { name: "Active", isNumber: true, cell: (entity) => count(entity.active) },
          { name: "Dead letters", isNumber: true, cell: (entity) => count(entity["dead-letter"]) },
          { name: "Receivers", isNumber: true, cell: (entity) => count(entity.receivers) },
        ]}
      />
    </Panel>
  );
}

function SubscriptionRules({ path }: { path: string }) {
  const page = useData<{ rules: Json[] }>((signal) => get(entityPath(path, "/Rules"), signal), [path]);
  return (
    <Panel title="Rules">
      <Failure error={page.error} />
      <Table
        empty={page.value && "It has no rule, so it gets no message."}
        rows={page.value?.rules ?? []}
        id={(rule) => String(rule.name)}
        columns={[
          { name: "Rule", cell: (rule) => String(rule.name) },
          { name: "Filter", cell: (rule) => <code>{filterText(rule.filter)}</code> },
          { name: "Action", cell: (rule) => <code>{rule.action === undefined ? "" : String(rule.action)}</code> },
        ]}
      />
    </Panel>
  );
}

export function filterText(filter: unknown): string {
  if (typeof filter !== "object" || filter === null) return String(filter ?? "true");
  return "sql" in filter ? String(filter.sql) : JSON.stringify(filter);
}
