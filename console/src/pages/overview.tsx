// Is it healthy, and where do messages pile up.
import { useMemo } from "preact/hooks";
import type { Counts } from "../api";
import { Chart } from "../chart";
import { age, bytes, count, many, rate } from "../format";
import { useLive } from "../live";
import { link } from "../route";
import { Table } from "../table";
import { Badge, Count, Figure, Panel } from "../ui";
import { Namespaces } from "./namespaces";

const THROUGHPUT = [
  { name: "In", color: "--in" },
  { name: "Completed", color: "--out" },
];
const BACKLOG = [
  { name: "Active", color: "--in" },
  { name: "Dead letters", color: "--dead" },
];

export function Overview({ hasNamespaces }: { hasNamespaces: boolean }) {
  const { overview, points, problem } = useLive();
  const [throughput, backlog] = useMemo(() => {
    const times = points.map((point) => point.time);
    return [
      [times, points.map((point) => point.in), points.map((point) => point.out)],
      [times, points.map((point) => point.active), points.map((point) => point.dead)],
    ];
  }, [points]);
  if (!overview) return <p class="loading">{problem ? "There are no figures." : "Reading…"}</p>;
  const last = points.at(-1);
  const { messages, entities, alarms } = overview;
  const commit = [...points].reverse().find((point) => point.commit !== null)?.commit;
  const isHealthy = alarms.every((alarm) => alarm.severity !== "critical");
  return (
    <>
      <h1>Overview</h1>
      <div class="figures dense">
        <Figure
          name="Health"
          value={isHealthy ? "Healthy" : "At risk"}
          note={alarms.length === 0 ? "no alarms" : many(alarms.length, "alarm")}
          tone={isHealthy ? "good" : "bad"}
        />
        <Figure
          name="Active messages"
          value={count(messages.active)}
          note={`${count(messages.locked)} locked, ${bytes(messages.bytes)}`}
          values={points.map((point) => point.active)}
        />
        <Figure
          name="Dead letters"
          value={count(messages["dead-letter"])}
          note={`${count(messages.scheduled)} scheduled, ${count(messages.deferred)} deferred`}
          tone={messages["dead-letter"] > 0 ? "warn" : ""}
          values={points.map((point) => point.dead)}
        />
        <Figure
          name="In, a second"
          value={rate(last?.in ?? 0)}
          note={`${rate(last?.out ?? 0)} completed`}
          values={points.map((point) => point.in)}
        />
        {overview.commits && (
          <Figure
            name="Commit"
            value={commit === undefined || commit === null ? "–" : `${commit.toFixed(2)} ms`}
            note="average"
            values={points.map((point) => point.commit ?? 0)}
          />
        )}
        {overview["free-bytes"] !== undefined && (
          <Figure name="Free on the disk" value={bytes(overview["free-bytes"])} note="in the data directory's file system" />
        )}
        {overview.connections !== undefined && overview.refused && (
          <Figure
            name="Connections"
            value={count(overview.connections)}
            note={`${count(overview.refused.connections + overview.refused.credentials)} refused`}
            values={points.map((point) => point.connections)}
          />
        )}
        <Figure
          name="Entities"
          value={count(entities.queues + entities.topics + entities.subscriptions)}
          note={`${many(entities.queues, "queue")}, ${many(entities.topics, "topic")}`}
        />
      </div>
      {alarms.length > 0 && (
        <Panel title="Alarms">
          <ul class="alarms">
            {alarms.map((alarm) => (
              <li key={alarm.text}>
                <Badge text={alarm.severity} tone={alarm.severity === "critical" ? "bad" : "warn"} />
                {alarm.entity && <a href={link(["entity", alarm.entity])}>{alarm.entity}</a>} {alarm.text}
              </li>
            ))}
          </ul>
        </Panel>
      )}
      <div class="columns">
        <Panel title="Throughput, messages a second">
          <Chart label="Messages in and completed a second" series={THROUGHPUT} data={throughput ?? []} />
        </Panel>
        <Panel title="Backlog and dead letters">
          <Chart label="Active messages and dead letters" series={BACKLOG} data={backlog ?? []} />
        </Panel>
        <Longest title="Longest backlogs" entities={overview.backlogs} part="active" />
        <Longest title="Most dead letters" entities={overview["dead-letters"]} part="dead-letter" />
        {hasNamespaces && (
          <Panel title="Namespaces">
            <Namespaces />
          </Panel>
        )}
      </div>
    </>
  );
}

function Longest(props: { title: string; entities: Counts[]; part: "active" | "dead-letter" }) {
  const { entities, part } = props;
  const most = Math.max(...entities.map((entity) => entity[part]), 1);
  const tab = part === "active" ? "messages" : "dead-letters";
  return (
    <Panel title={props.title}>
      <Table
        empty={part === "active" ? "No entity has active messages." : "There are no dead letters."}
        rows={entities}
        id={(entity) => entity.path}
        columns={[
          {
            name: "Entity",
            cell: (entity) => (
              <>
                <a href={link(["entity", entity.path, tab])}>{entity.path}</a>
                <meter min={0} max={most} value={entity[part]} aria-label={`Share of ${entity.path}`} />
              </>
            ),
          },
          {
            name: "Messages",
            isNumber: true,
            cell: (entity) => <Count value={entity[part]} tone={part === "active" ? "" : "warn"} />,
          },
          part === "active"
            ? { name: "Oldest", isNumber: true, cell: (entity) => age(entity["oldest-age-ms"]) }
            : { name: "Active", isNumber: true, cell: (entity) => count(entity.active) },
          { name: "Receivers", isNumber: true, cell: (entity) => <Count value={entity.receivers} /> },
        ]}
      />
    </Panel>
  );
}
