// A picture of topics, subscriptions, queues, and the ways of messages between them.
import { useMemo, useState } from "preact/hooks";
import { type Counts, type Json, get } from "../api";
import { useData } from "../data";
import { count } from "../format";
import { link } from "../route";
import { Empty, Failure, Panel } from "../ui";

/** Entities in the picture at most; a search leaves out the others. */
const NODES = 120;
const [WIDTH, HEIGHT, GAP, COLUMN] = [230, 42, 14, 330];

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

interface Named extends Json {
  name: string;
  subscriptions?: Named[];
  rules?: Json[];
}

/** The path that a target means; a target may be written as an address. */
function targetPath(target: unknown): string | null {
  if (typeof target !== "string" || target === "") return null;
  return target.replace(/^[a-z]+:\/\/[^/]*\//i, "");
}

function edgesOf(path: string, entity: Named): Edge[] {
  const edges: Edge[] = [];
  const to = targetPath(entity["forward-to"]);
  const dead = targetPath(entity["forward-dead-lettered-messages-to"]);
  if (to) edges.push({ from: path, to, kind: "forward", label: "forwards to" });
  if (dead) edges.push({ from: path, to: dead, kind: "dead", label: "dead letters to" });
  return edges;
}

function graph(namespace: { queues: Named[]; topics: Named[] }, search: string) {
  const edges: Edge[] = [];
  const found: Omit<Node, "x" | "y">[] = [];
  for (const topic of namespace.topics) {
    found.push({ path: topic.name, name: topic.name, kind: "topic" });
    for (const one of topic.subscriptions ?? []) {
      const path = `${topic.name}/Subscriptions/${one.name}`;
      found.push({ path, name: one.name, kind: "subscription" });
      const rules = one.rules?.length ?? 0;
      edges.push({ from: topic.name, to: path, kind: "rule", label: rules === 1 ? "1 rule" : `${rules} rules` });
      edges.push(...edgesOf(path, one));
    }
  }
  for (const queue of namespace.queues) {
    found.push({ path: queue.name, name: queue.name, kind: "queue" });
    edges.push(...edgesOf(queue.name, queue));
  }
  const word = search.toLowerCase();
  const fits = (path: string) => path.toLowerCase().includes(word);
  const near = edges.filter((edge) => fits(edge.from) || fits(edge.to)).flatMap((edge) => [edge.from, edge.to]);
  const kept = found.filter((node) => fits(node.path) || near.includes(node.path));
  const next = { topic: 0, subscription: 0, queue: 0 };
  const column = { topic: 0, subscription: COLUMN, queue: 2 * COLUMN };
  const nodes = kept.slice(0, NODES).map((node): Node => {
    const y = next[node.kind];
    next[node.kind] += HEIGHT + GAP;
    return { ...node, x: column[node.kind], y };
  });
  return { nodes, edges, left: kept.length - nodes.length, height: Math.max(...Object.values(next), HEIGHT) };
}

export function Topology() {
  const [search, setSearch] = useState("");
  const namespace = useData<{ queues: Named[]; topics: Named[] }>((signal) => get("entities", signal), []);
  const counts = useData<{ entities: Counts[] }>((signal) => get("counts?count=1000", signal), [], true);
  const picture = useMemo(() => namespace.value && graph(namespace.value, search), [namespace.value, search]);
  const byPath = new Map(counts.value?.entities.map((entity) => [entity.path.toLowerCase(), entity]));
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
          <i class="way rule" /> rules <i class="way forward" /> forwarding <i class="way dead" /> dead letters
        </span>
      </div>
      <Failure error={namespace.error} />
      <Panel title="Topics, subscriptions and queues">
        {picture && picture.nodes.length === 0 && <Empty>No entity fits.</Empty>}
        {picture && picture.left > 0 && <p class="note">{count(picture.left)} more entities: search to see them.</p>}
        {picture && picture.nodes.length > 0 && <Picture {...picture} byPath={byPath} />}
      </Panel>
    </>
  );
}

function Picture(props: { nodes: Node[]; edges: Edge[]; height: number; byPath: Map<string, Counts> }) {
  const { nodes, edges, height, byPath } = props;
  const places = new Map(nodes.map((node) => [node.path.toLowerCase(), node]));
  return (
    <div class="scroll picture" tabIndex={0} role="region" aria-label="Picture of the namespace">
      <svg width={2 * COLUMN + WIDTH + 60} height={height + 4} role="group" aria-label="Entities and ways between them">
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0L8 4L0 8z" fill="context-stroke" />
          </marker>
        </defs>
        {edges.map((edge) => {
          const [from, to] = [places.get(edge.from.toLowerCase()), places.get(edge.to.toLowerCase())];
          return from && to && <Way key={`${edge.from} ${edge.kind} ${edge.to}`} edge={edge} from={from} to={to} />;
        })}
        {nodes.map((node) => (
          <Box key={node.path} node={node} counts={byPath.get(node.path.toLowerCase())} />
        ))}
      </svg>
    </div>
  );
}

function Way({ edge, from, to }: { edge: Edge; from: Node; to: Node }) {
  const isBack = to.x <= from.x;
  const start = { x: from.x + WIDTH, y: from.y + HEIGHT / 2 };
  const end = { x: isBack ? to.x + WIDTH : to.x, y: to.y + HEIGHT / 2 };
  const bend = isBack ? 50 : (end.x - start.x) / 2;
  const turn = isBack ? end.x + 50 : end.x - bend;
  return (
    <path
      class={`way ${edge.kind}`}
      d={`M${start.x} ${start.y}C${start.x + bend} ${start.y} ${turn} ${end.y} ${end.x} ${end.y}`}
      marker-end="url(#arrow)"
    >
      <title>{`${edge.from} ${edge.label} ${edge.to}`}</title>
    </path>
  );
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
