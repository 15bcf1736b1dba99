// Parts that pages share.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { count } from "./format";

/** A line of the last values. */
export function Sparkline({ values, label }: { values: number[]; label: string }) {
  const most = Math.max(...values, 1);
  const step = 100 / Math.max(values.length - 1, 1);
  const points = values.map((value, at) => `${(at * step).toFixed(1)},${(23 - (value / most) * 22).toFixed(1)}`);
  return (
    <svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label={label}>
      <polyline points={points.join(" ")} />
    </svg>
  );
}

export function Figure(props: { name: string; value: string; note?: string; values?: number[]; tone?: string }) {
  return (
    <div class={`figure ${props.tone ?? ""}`}>
      <span class="name">{props.name}</span>
      <strong>{props.value}</strong>
      <span class="note">{props.note ?? "\u00a0"}</span>
      {props.values && props.values.length > 1 && (
        <Sparkline values={props.values} label={`${props.name} over the last minutes`} />
      )}
    </div>
  );
}

export function Panel(props: { title: string; aside?: ComponentChildren; children: ComponentChildren; class?: string }) {
  return (
    <section class={`panel ${props.class ?? ""}`}>
      <header>
        <h2>{props.title}</h2>
        {props.aside}
      </header>
      {props.children}
    </section>
  );
}

export function Failure({ error }: { error: string | null }) {
  return error ? (
    <p class="failure" role="alert">
      {error}
    </p>
  ) : null;
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

/** A number that stands out if it is not zero. */
export function Count({ value, tone }: { value: number; tone?: string }) {
  return <span class={value === 0 ? "zero" : tone}>{count(value)}</span>;
}

export function Badge({ text, tone }: { text: string; tone?: string }) {
  return <span class={`badge ${tone ?? ""}`}>{text}</span>;
}

/** A dialog over the page. Escape closes it, and the focus goes back. */
export function Dialog(props: { title: string; wide?: boolean; close: () => void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={props.wide ? "wide" : ""}
      aria-label={props.title}
      onCancel={(event) => {
        event.preventDefault();
        props.close();
      }}
    >
      <header>
        <h2>{props.title}</h2>
        <button type="button" class="quiet" onClick={props.close} aria-label="Close">
          ✕
        </button>
      </header>
      {props.children}
    </dialog>
  );
}

export interface Question {
  title: string;
  text: string;
  action: string;
  /** The button that does nothing, if not "Cancel". */
  dismiss?: string;
  detail?: ComponentChildren;
  /** What the reader may say about it. */
  fields?: string[];
  /** Nothing that is there is changed. */
  isHarmless?: boolean;
  run: (said: Record<string, string>) => Promise<string | void>;
}

/** Says what an action will do, and does it if the reader agrees. */
export function Ask({ question, close }: { question: Question; close: (said?: string) => void }) {
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [typed, setTyped] = useState<Record<string, string>>({});
  const run = () => {
    setBusy(true);
    question
      .run(typed)
      .then((said) => close(said ?? undefined))
      .catch((error: Error) => {
        setError(error.message);
        setBusy(false);
      });
  };
  return (
    <Dialog title={question.title} close={() => close()}>
      <p>{question.text}</p>
      {question.detail}
      {question.fields?.map((field) => (
        <label key={field}>
          {field}
          <input
            value={typed[field] ?? ""}
            onInput={(event) => setTyped({ ...typed, [field]: event.currentTarget.value })}
          />
        </label>
      ))}
      <Failure error={error} />
      <footer>
        <button type="button" onClick={() => close()}>
          {question.dismiss ?? "Cancel"}
        </button>
        <button type="button" class={question.isHarmless ? "primary" : "danger"} disabled={isBusy} onClick={run}>
          {question.action}
        </button>
      </footer>
    </Dialog>
  );
}

/** A page's question and its last result. */
export function useAsk() {
  const [question, setQuestion] = useState<Question | null>(null);
  const [said, setSaid] = useState<string | null>(null);
  const view = (
    <>
      {said && (
        <p class="said" role="status">
          {said}
        </p>
      )}
      {question && (
        <Ask
          question={question}
          close={(said) => {
            setQuestion(null);
            if (said) setSaid(said);
          }}
        />
      )}
    </>
  );
  return { ask: setQuestion, say: setSaid, view };
}

export function Tabs(props: { tabs: { name: string; address: string; count?: number }[]; current: string }) {
  return (
    <nav class="tabs" aria-label="Parts of the entity">
      {props.tabs.map((tab) => (
        <a key={tab.name} href={tab.address} aria-current={tab.name === props.current ? "page" : undefined}>
          {tab.name}
          {tab.count !== undefined && tab.count > 0 && <span class="pill">{count(tab.count)}</span>}
        </a>
      ))}
    </nav>
  );
}

export function Copy({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = () => {
    void navigator.clipboard?.writeText(text).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    });
  };
  return (
    <button type="button" onClick={copy}>
      {isCopied ? "Copied" : label}
    </button>
  );
}
