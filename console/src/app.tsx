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
import { Rules } from "./pages/rules";
import { Send } from "./pages/send";
import { Settings } from "./pages/settings";
import { SignIn } from "./pages/signin";
import { Topology } from "./pages/topology";
import { go, link, usePlace } from "./route";
import { Dialog } from "./ui";

type Right = "send" | "listen" | "manage";

const PAGES: { word: string; name: string; key: string; right: Right }[] = [
  { word: "", name: "Overview", key: "o", right: "listen" },
  { word: "entities", name: "Entities", key: "e", right: "listen" },
  { word: "topology", name: "Topology", key: "t", right: "listen" },
  { word: "connections", name: "Connections", key: "n", right: "manage" },
  { word: "send", name: "Send", key: "s", right: "send" },
  { word: "rules", name: "Rules", key: "r", right: "manage" },
  { word: "settings", name: "Settings", key: "p", right: "manage" },
  { word: "clock", name: "Clock", key: "c", right: "manage" },
];

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
  useEffect(() => follow(session?.listen ?? false), [session]);
  if (session) return <Frame session={session} />;
  return isAsked ? <SignIn done={setSession} /> : <p class="loading">Connecting…</p>;
}

function Frame({ session }: { session: Session }) {
  const place = usePlace();
  const [isHelp, setHelp] = useState(false);
  const pages = PAGES.filter((page) => session[page.right]);
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
        <nav aria-label="Pages">
          {pages.map((page) => (
            <a key={page.word} href={link([page.word])} aria-current={page.word === current ? "page" : undefined}>
              {page.name}
            </a>
          ))}
        </nav>
        <div class="foot">
          <span>{session.version}</span>
          <button type="button" class="quiet" onClick={() => setHelp(true)}>
            Keys
          </button>
          <button type="button" class="quiet" onClick={() => void signOut()}>
            Sign out
          </button>
        </div>
      </aside>
      <div class="body">
        {session.listen && <Connection />}
        <main id="content" tabIndex={-1}>
          <Page session={session} words={place.words} parameters={place.parameters} />
        </main>
      </div>
      {isHelp && <Help pages={pages} close={() => setHelp(false)} />}
    </>
  );
}

function skip(event: Event) {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Page(props: { session: Session; words: string[]; parameters: URLSearchParams }): ComponentChildren {
  const { session, words, parameters } = props;
  switch (words[0] ?? "") {
    case "":
      return session.listen ? <Overview /> : null;
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
    case "clock":
      return <Clock />;
    default:
      return <p class="empty">There is no such page.</p>;
  }
}

function Connection() {
  const { isConnected, overview } = useLive();
  const alarms = overview?.alarms.length ?? 0;
  return (
    <div class="connection" role="status">
      {isConnected ? (
        <span class={overview ? "dot live" : "dot"}>{overview ? "Live" : "Connecting"}</span>
      ) : (
        <span class="dot cut">Connection lost. The page tries again and shows the last figures until then.</span>
      )}
      {alarms > 0 && <a href={link([])}>{many(alarms, "alarm")}</a>}
    </div>
  );
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
