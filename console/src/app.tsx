// The frame of all pages: sign-in, navigation, keys, and the state of the connection.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type Session, signIn, signOut, whenSignedOut } from "./api";
import { many } from "./format";
import { follow, useLive } from "./live";
import { Clock } from "./pages/clock";
import { Connections } from "./pages/connections";
import { Entities } from "./pages/entities";
import { Entity } from "./pages/entity";
import { Overview } from "./pages/overview";
import { FaultRules } from "./pages/faults";
import { Lineage } from "./pages/lineage";
import { DEFAULT, Namespaces } from "./pages/namespaces";
import { Rules } from "./pages/rules";
import { Send } from "./pages/send";
import { Settings } from "./pages/settings";
import { SignIn } from "./pages/signin";
import { Snapshots } from "./pages/snapshots";
import { Topology } from "./pages/topology";
import { go, link, namespace, usePlace } from "./route";
import { Dialog } from "./ui";

/** The right "all" is that of managing all namespaces. */
type Right = "send" | "listen" | "manage" | "all";

const PAGES: { word: string; name: string; key: string; right: Right }[] = [
  { word: "", name: "Overview", key: "o", right: "listen" },
  { word: "entities", name: "Entities", key: "e", right: "listen" },
  { word: "topology", name: "Topology", key: "t", right: "listen" },
  { word: "connections", name: "Connections", key: "n", right: "all" },
  { word: "send", name: "Send", key: "s", right: "send" },
  { word: "rules", name: "Rules", key: "r", right: "manage" },
  { word: "settings", name: "Settings", key: "p", right: "manage" },
  { word: "lineage", name: "Lineage", key: "l", right: "listen" },
  { word: "clock", name: "Clock", key: "c", right: "all" },
  { word: "faults", name: "Faults", key: "f", right: "all" },
  { word: "snapshots", name: "Snapshots", key: "k", right: "all" },
];

/** The pages of a key of single entities. */
const OF_ENTITIES = ["", "entities", "topology", "send"];

/** Whether the session's key manages the default namespace, and so all of them. */
function managesAll(session: Session): boolean {
  return session.manage && session.namespace === DEFAULT && !session["entities-only"];
}

/** The pages that the session has in the namespace of the address. Connections are those of the whole broker. */
function pagesOf(session: Session) {
  const has = (right: Right) => (right === "all" ? managesAll(session) : session[right]);
  const isThere = (word: string) => (session["entities-only"] ? OF_ENTITIES.includes(word) : true);
  return PAGES.filter(
    ({ word, right }) => has(right) && isThere(word) && !(word === "connections" && !isDefault(session)),
  );
}

function isDefault(session: Session): boolean {
  return (namespace || session.namespace) === DEFAULT;
}

export function App() {
  const [session, setSession] = useState<Session | null>(null);
  const [isAsked, setAsked] = useState(false);
  useEffect(() => {
    whenSignedOut(() => setSession(null));
    signIn()
      .then(setSession)
      .catch(() => {})
      .finally(() => setAsked(true));
  }, []);
  useEffect(() => follow(session !== null && session.listen && mayBeHere(session)), [session]);
  if (session) return <Frame session={session} />;
  return isAsked ? <SignIn done={setSession} /> : <p class="loading">Connecting…</p>;
}

function Frame({ session }: { session: Session }) {
  const place = usePlace();
  const [isHelp, setHelp] = useState(false);
  const [isChoosing, setChoosing] = useState(false);
  const pages = pagesOf(session);
  const word = place.words[0] ?? "";
  const current = word === "entity" ? "entities" : word;
  useEffect(() => {
    if (word === "" && !session.listen) go(link(["send"]));
  }, [word, session]);
  useEffect(() => {
    let isGoing = false;
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || document.querySelector("dialog[open]");
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      const page = isGoing ? pages.find((page) => page.key === event.key) : undefined;
      isGoing = event.key === "g";
      if (page) go(link([page.word]));
      else if (event.key === "?") setHelp(true);
      else if (event.key === "/") {
        event.preventDefault();
        const search = document.querySelector<HTMLInputElement>("main input[type=search]");
        if (search) search.focus();
        else go(link(["entities"], { focus: "search" }));
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [session]);
  return (
    <>
      <a class="skip" href="#content" onClick={skip}>
        Skip to the page
      </a>
      <aside>
        <a class="brand" href={link([])}>
          <Mark /> Railbus
        </a>
        {managesAll(session) && (
          <button type="button" class="namespace" aria-haspopup="dialog" onClick={() => setChoosing(true)}>
            <span class="note">Namespace</span> {namespace || session.namespace}
          </button>
        )}
        <nav aria-label="Pages">
          {pages.map((page) => (
            <a key={page.word} href={link([page.word])} aria-current={page.word === current ? "page" : undefined}>
              {page.name}
            </a>
          ))}
        </nav>
        <div class="foot">
          <span>{session.version}</span>
          {session["entities-only"] && <span>Key of single entities</span>}
          <button type="button" class="quiet" onClick={() => setHelp(true)}>
            Keys
          </button>
          <button type="button" class="quiet" onClick={() => void signOut()}>
            Sign out
          </button>
        </div>
      </aside>
      <div class="body">
        {session.listen && <Connection session={session} />}
        <main id="content" tabIndex={-1}>
          {mayBeHere(session) ? (
            <Page session={session} words={place.words} parameters={place.parameters} />
          ) : (
            <p class="failure" role="alert">
              The namespace {namespace} is not that of your key, {session.namespace}. A key of the default namespace that
              has the right Manage shows it.
            </p>
          )}
        </main>
      </div>
      {isChoosing && (
        <Dialog title="Namespaces" wide close={() => setChoosing(false)}>
          <Namespaces chosen={() => setChoosing(false)} />
        </Dialog>
      )}
      {isHelp && <Help pages={pages} close={() => setHelp(false)} />}
    </>
  );
}

function mayBeHere(session: Session): boolean {
  return !namespace || namespace === session.namespace || managesAll(session);
}

function skip(event: Event) {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Page(props: { session: Session; words: string[]; parameters: URLSearchParams }): ComponentChildren {
  const { session, words, parameters } = props;
  const name = namespace || session.namespace;
  switch (words[0] ?? "") {
    case "":
      return session.listen ? <Overview hasNamespaces={managesAll(session) && isDefault(session)} /> : null;
    case "entities":
      return <Entities session={session} parameters={parameters} />;
    case "entity":
      return (
        <Entity
          key={words[1]}
          session={session}
          path={words[1] ?? ""}
          tab={words[2] ?? "state"}
          parameters={parameters}
        />
      );
    case "topology":
      return <Topology />;
    case "connections":
      return <Connections parameters={parameters} />;
    case "send":
      return <Send path={parameters.get("path") ?? ""} />;
    case "rules":
      return <Rules />;
    case "settings":
      return <Settings />;
    case "lineage":
      return <Lineage key={parameters.toString()} name={name} parameters={parameters} />;
    case "clock":
      return <Clock name={name} />;
    case "faults":
      return <FaultRules name={name} />;
    case "snapshots":
      return <Snapshots name={name} />;
    default:
      return <p class="empty">There is no such page.</p>;
  }
}

function Connection({ session }: { session: Session }) {
  const { problem, overview } = useLive();
  const alarms = overview?.alarms.length ?? 0;
  const faults = overview?.["fault-rules"] ?? 0;
  return (
    <div class="connection" role="status">
      {faults > 0 && (
        <strong class="banner">
          Operations fail on purpose: {managesAll(session) ? <a href={link(["faults"])}>{rules(faults)}</a> : rules(faults)}
        </strong>
      )}
      {problem ? (
        <span class="dot cut">{problem} The page tries again and shows the last figures until then.</span>
      ) : (
        <span class={overview ? "dot live" : "dot"}>{overview ? "Live" : "Connecting"}</span>
      )}
      {alarms > 0 && <a href={link([])}>{many(alarms, "alarm")}</a>}
    </div>
  );
}

function rules(faults: number): string {
  return many(faults, "fault rule");
}

function Help({ pages, close }: { pages: { name: string; key: string }[]; close: () => void }) {
  return (
    <Dialog title="Keys" close={close}>
      <dl class="keys">
        <dt>/</dt>
        <dd>Search</dd>
        <dt>?</dt>
        <dd>These keys</dd>
        <dt>Escape</dt>
        <dd>Close a dialog</dd>
        {pages.map((page) => (
          <>
            <dt>g {page.key}</dt>
            <dd>{page.name}</dd>
          </>
        ))}
      </dl>
    </Dialog>
  );
}

function Mark() {
  return (
    <svg viewBox="0 0 16 16" width="20" height="20" aria-hidden="true">
      <rect width="16" height="16" rx="4" fill="var(--accent)" />
      <path d="M4 5h8M4 8h8M4 11h5" stroke="var(--on-accent)" stroke-width="1.6" />
    </svg>
  );
}
