// One message with all that is known of it, and what can be done with it.
import { useState } from "preact/hooks";
import { type Message, type Session, call, entityPath, get } from "../api";
import { BodyView } from "../body-view";
import { LANGUAGES, code } from "../code";
import { useData } from "../data";
import { typed } from "../format";
import { link } from "../route";
import { Copy, Dialog, Failure } from "../ui";
import { draftOf, keepDraft } from "./draft";

interface Props {
  session: Session;
  path: string;
  part: string;
  number: number;
  close: () => void;
  done: (said: string) => void;
}

/** Members that have a view of their own. */
const OTHERS = ["properties", "body", "body-base64", "body-bytes", "body-start", "locked-until"];

export function OpenMessage({ session, path, part, number, close, done }: Props) {
  const page = useData<{ messages: Message[] }>(
    (signal) => get(entityPath(path, `/messages?part=${part}&from=${number}&count=1`), signal),
    [path, part, number],
  );
  const [error, setError] = useState<string | null>(null);
  const [language, setLanguage] = useState<string>(LANGUAGES[0]);
  const message = page.value?.messages.find((message) => message["sequence-number"] === number);
  const isDead = part.endsWith("dead-letter");
  const act = (verb: "purge" | "redrive", said: string) => {
    const body = { part, filter: `sys.SequenceNumber = ${number}`, limit: 1 };
    call<{ purged?: number; redriven?: number }>("POST", entityPath(path, `/${verb}`), body)
      .then((answer) => {
        if ((answer.purged ?? answer.redriven) === 1) done(said);
        else setError("The message stayed: another receiver has it, or it has gone.");
      })
      .catch((error: Error) => setError(error.message));
  };
  const again = () => {
    if (!message) return;
    call("POST", entityPath(target(path), "/messages"), draftOf(message))
      .then(() => done(`A copy of message ${number} is sent to ${target(path)}.`))
      .catch((error: Error) => setError(error.message));
  };
  return (
    <Dialog title={`Message ${number}`} wide close={close}>
      <Failure error={page.error ?? error} />
      {page.value && !message && <p class="empty">The message has gone.</p>}
      {message && (
        <>
          <BodyView message={message} />
          <div class="columns">
            <section>
              <h3>Message</h3>
              <Facts facts={Object.entries(message).filter(([name]) => !OTHERS.includes(name))} />
            </section>
            <section>
              <h3>Application properties</h3>
              {message.properties ? <Facts facts={Object.entries(message.properties)} /> : <p class="empty">None.</p>}
            </section>
          </div>
          <footer>
            <select aria-label="Language" value={language} onChange={(event) => setLanguage(event.currentTarget.value)}>
              {LANGUAGES.map((language) => (
                <option key={language}>{language}</option>
              ))}
            </select>
            <Copy label="Copy as code" text={code(language, target(path), message)} />
            <span class="grow" />
            {session.send && message["body-bytes"] === undefined && (
              <>
                <button type="button" onClick={again}>
                  Send again
                </button>
                <a class="button" href={link(["send"], { path: target(path) })} onClick={() => keepDraft(message)}>
                  Edit and send
                </a>
              </>
            )}
            {session.manage && isDead && (
              <button type="button" class="primary" onClick={() => act("redrive", `Message ${number} is redriven.`)}>
                Redrive
              </button>
            )}
            {session.manage && (
              <button type="button" class="danger" onClick={() => act("purge", `Message ${number} is deleted.`)}>
                {part === "active" ? "Complete" : "Delete"}
              </button>
            )}
          </footer>
        </>
      )}
    </Dialog>
  );
}

/** Where a message of an entity is sent to: a subscription's goes to its topic. */
function target(path: string): string {
  return path.replace(/\/subscriptions\/[^/]*$/i, "");
}

function Facts({ facts }: { facts: [string, unknown][] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{typed(value as Message["message-id"])}</dd>
        </div>
      ))}
    </dl>
  );
}
