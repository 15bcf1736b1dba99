// A picture of topics, subscriptions, queues, and the ways of messages between them.
import { useEffect, useMemo, useState } from "preact/hooks";
import { type Counts, type Json, entityPath, get, queryText, topicOf } from "../api";
import { useData } from "../data";
import { count, rate } from "../format";
import { link } from "../route";
import { Empty, Failure, Panel } from "../ui";
import { filterText } from "./entity";

/** Entities in the picture at most; a search leaves out the others. */
const NODES = 120;
/** Entities that are read at most. */
const ENTITIES = 400;
/** Topics whose rules are read at most, and subscriptions that each may have. */
const [TOPICS, BELOW] = [24, 100];
/** Characters of a rule on its way. */
const LABEL = 26;
const [WIDTH, HEIGHT, GAP] = [230, 42, 14];
/** Between topics and subscriptions is room for the rules. */
const COLUMNS = { topic: 0, subscription: 420, queue: 740 };

interface Node {
  path: string;
  name: string;
  kind: "topic" | "subscription" | "queue";
  x: number;
  y: number;
}

interface Edge {
  from: string;
  to: string;
  kind: "rule" | "forward" | "dead";
  label: string;
}

/** The path that a target means; a target may be written as an address. */
function targetPath(target: string | null): string | null {
  return target ? target.replace(/^[a-z]+:\/\/[^/]*\//i, "") : null;
}

function edgesOf(entity: Counts): Edge[] {
  const { path, kind } = entity;
  const edges: Edge[] = [];
  const to = targetPath(entity["forward-to"]);
  const dead = targetPath(entity["forward-dead-lettered-messages-to"]);
  if (kind === "subscription") edges.push({ from: topicOf(path), to: path, kind: "rule", label: "selects by rules for" });
  if (to) edges.push({ from: path, to, kind: "forward", label: "forwards to" });
  if (dead) edges.push({ from: path, to: dead, kind: "dead", label: "dead letters to" });
  return edges;
}

function graph(entities: Counts[], search: string) {
  const edges = entities.flatMap(edgesOf);
  const word = search.toLowerCase();
  const fits = (path: string) => path.toLowerCase().includes(word);
  const near = edges.filter((edge) => fits(edge.from) || fits(edge.to)).flatMap((edge) => [edge.from, edge.to]);
  const kept = entities.filter((entity) => fits(entity.path) || near.includes(entity.path));
  const next = { topic: 0, subscription: 0, queue: 0 };
  const nodes = kept.slice(0, NODES).map(({ path, kind }): Node => {
    const y = next[kind];
    next[kind] += HEIGHT + GAP;
    return { path, name: kind === "subscription" ? path.split("/").at(-1)! : path, kind, x: COLUMNS[kind], y };
  });
  return { nodes, edges, left: kept.length - nodes.length, height: Math.max(...Object.values(next), HEIGHT) };
}

export function Topology() {
  const [search, setSearch] = useState("");
  const [isLarge, setLarge] = useState(false);
  const query = new URLSearchParams({ count: String(ENTITIES) });
  // A namespace with more entities than that is searched by the broker.
  if (isLarge && search) query.set("search", search);
  const counts = useData<{ entities: Counts[]; total: number }>(
    (signal) => get(`counts?${queryText(query)}`, signal),
    [query.toString()],
    true,
  );
  const entities = counts.value?.entities;
  const beyond = (counts.value?.total ?? 0) - (entities?.length ?? 0);
  if (beyond > 0 && !isLarge) setLarge(true);
  const picture = useMemo(() => entities && graph(entities, search), [entities, search]);
  const { byPath, flow } = useFlow(entities);
  const rules = useRules(picture?.nodes ?? []);
  return (
    <>
      <h1>Topology</h1>
      <div class="toolbar">
        <input
          type="search"
          placeholder="Search by name"
          aria-label="Search by name"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <span class="note">
          <i class="way rule" /> rules <i class="way forward" /> forwarding <i class="way dead" /> dead letters, each with its messages a second
        </span>
      </div>
      <Failure error={counts.error} />
      <Panel title="Topics, subscriptions and queues">
        {picture && picture.nodes.length === 0 && <Empty>No entity fits.</Empty>}
        {picture && picture.left + beyond > 0 && (
          <p class="note">{count(picture.left + beyond)} more entities: search to see them.</p>
        )}
        {picture && picture.nodes.length > 0 && <Picture {...picture} byPath={byPath} flow={flow} rules={rules} />}
      </Panel>
    </>
  );
}

type ByPath = Map<string, Counts>;

/** The rules of subscriptions by path in lower case, each as its name and condition. */
type Rules = Map<string, string[]>;

/** The rules of the subscriptions in the picture. They are read again when the picture has others. */
function useRules(nodes: Node[]): Rules {
  const topics = nodes.filter(({ path, kind }) => {
    const isBelow = (one: Node) => one.kind === "subscription" && topicOf(one.path) === path;
    const below = kind === "topic" ? nodes.filter(isBelow).length : 0;
    return below > 0 && below <= BELOW;
  });
  const paths = topics.slice(0, TOPICS).map(({ path }) => path);
  const { value } = useData<Json[]>(
    (signal) => Promise.all(paths.map((path) => get<Json>(entityPath(path), signal))),
    [nodes.map(({ path }) => path).join("\n")],
  );
  return useMemo(() => new Map((value ?? []).flatMap(rulesOf)), [value]);
}

function rulesOf(topic: Json): [string, string[]][] {
  const subscriptions = topic.subscriptions as { name: string; rules: Json[] }[];
  const text = (rule: Json) => `${rule.name}: ${filterText(rule.filter)}`;
  return subscriptions.map(({ name, rules }) => [`${topic.name}/subscriptions/${name}`.toLowerCase(), rules.map(text)]);
}

/** Messages a second on the way of an edge. */
type Flow = (edge: Edge) => number;

/** The newest counts, and what has changed since those before. */
function useFlow(entities: Counts[] | undefined): { byPath: ByPath; flow: Flow } {
  const [readings, setReadings] = useState<{ time: number; byPath: ByPath }[]>([]);
  useEffect(() => {
    if (!entities) return;
    const byPath = new Map(entities.map((entity) => [entity.path.toLowerCase(), entity]));
    setReadings((old) => [...old, { time: Date.now() / 1000, byPath }].slice(-2));
  }, [entities]);
  const [before, now] = readings;
  const flow = ({ from, to, kind }: Edge) => {
    const [path, counter] = counterOf(kind, from, to);
    const [first, last] = [before?.byPath.get(path), now?.byPath.get(path)];
    if (!before || !now || !first || !last) return 0;
    return Math.max(last[counter] - first[counter], 0) / Math.max(now.time - before.time, 0.001);
  };
  return { byPath: readings.at(-1)?.byPath ?? new Map(), flow };
}

/** What counts the messages on an edge: a subscription's arrivals, or what leaves an entity that forwards. */
function counterOf(kind: Edge["kind"], from: string, to: string) {
  if (kind === "rule") return [to.toLowerCase(), "arrived"] as const;
  return [from.toLowerCase(), kind === "forward" ? "departed" : "dead-letters-departed"] as const;
}

function Picture(props: { nodes: Node[]; edges: Edge[]; height: number; byPath: ByPath; flow: Flow; rules: Rules }) {
  const { nodes, edges, height, byPath, flow, rules } = props;
  const places = new Map(nodes.map((node) => [node.path.toLowerCase(), node]));
  return (
    <div class="scroll picture" tabIndex={0} role="region" aria-label="Picture of the namespace">
      <svg width={COLUMNS.queue + WIDTH + 60} height={height + 4} role="group" aria-label="Entities and ways between them">
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0L8 4L0 8z" fill="context-stroke" />
          </marker>
        </defs>
        {edges.map((edge) => {
          const [from, to] = [places.get(edge.from.toLowerCase()), places.get(edge.to.toLowerCase())];
          const key = `${edge.from} ${edge.kind} ${edge.to}`;
          const own = edge.kind === "rule" ? rules.get(edge.to.toLowerCase()) : undefined;
          return from && to && <Way key={key} edge={edge} from={from} to={to} flow={flow(edge)} rules={own} />;
        })}
        {nodes.map((node) => (
          <Box key={node.path} node={node} counts={byPath.get(node.path.toLowerCase())} />
        ))}
      </svg>
    </div>
  );
}

function Way(props: { edge: Edge; from: Node; to: Node; flow: number; rules: string[] | undefined }) {
  const { edge, from, to, flow, rules } = props;
  const isBack = to.x <= from.x;
  const start = { x: from.x + WIDTH, y: from.y + HEIGHT / 2 };
  const end = { x: isBack ? to.x + WIDTH : to.x, y: to.y + HEIGHT / 2 };
  const bend = isBack ? 50 : (end.x - start.x) / 2;
  const turn = isBack ? end.x + 50 : end.x - bend;
  return (
    <g>
      <path
        class={`way ${edge.kind}`}
        d={`M${start.x} ${start.y}C${start.x + bend} ${start.y} ${turn} ${end.y} ${end.x} ${end.y}`}
        marker-end="url(#arrow)"
      >
        <title>{`${edge.from} ${edge.label} ${edge.to}`}</title>
      </path>
      {rules && (
        <a href={link(["entity", edge.to])} class="rules">
          <title>{[`Rules of ${edge.to}`, ...rules].join("\n")}</title>
          <text x={end.x - 12} y={end.y - 6}>
            {ruleLabel(rules)}
          </text>
        </a>
      )}
      {flow > 0 && edge.kind === "rule" && (
        <text class="flow end" x={end.x - 12} y={end.y + 15}>
          {`${rate(flow)}/s`}
        </text>
      )}
      {flow > 0 && edge.kind !== "rule" && (
        <text class="flow" x={isBack ? end.x + 22 : (start.x + end.x) / 2} y={(start.y + end.y) / 2 - 4}>
          {`${rate(flow)}/s`}
        </text>
      )}
    </g>
  );
}

/** The rules of a subscription in a few words: the only one, or how many there are. */
function ruleLabel(rules: string[]): string {
  const [only] = rules;
  if (only === undefined) return "no rule";
  if (rules.length > 1) return `${count(rules.length)} rules`;
  return only.length > LABEL ? only.slice(0, LABEL - 1) + "…" : only;
}

function Box({ node, counts }: { node: Node; counts: Counts | undefined }) {
  const dead = counts?.["dead-letter"] ?? 0;
  const note = node.kind === "topic" ? "topic" : `${count(counts?.active ?? 0)} active`;
  const name = node.name.length > 28 ? node.name.slice(0, 27) + "…" : node.name;
  return (
    <a href={link(["entity", node.path])} class={`box ${node.kind}`}>
      <title>{node.path}</title>
      <rect x={node.x + 1} y={node.y + 1} width={WIDTH - 2} height={HEIGHT - 2} rx="6" />
      <text x={node.x + 10} y={node.y + 17}>
        {name}
      </text>
      <text class="note" x={node.x + 10} y={node.y + 33}>
        {note}
        {dead > 0 && <tspan class="dead">{`  ${count(dead)} dead`}</tspan>}
      </text>
    </a>
  );
}
