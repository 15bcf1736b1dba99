// One message with all that is known of it, and what can be done with it.
import { useState } from "preact/hooks";
import { type Message, type Session, call, entityPath, message as read, topicOf } from "../api";
import { BodyView } from "../body-view";
import { LANGUAGES, code } from "../code";
import { useData } from "../data";
import { typed } from "../format";
import { link } from "../route";
import { Copy, Dialog, Failure, useAsk } from "../ui";
import { draftOf, isWhole, keepDraft, lacking, obstacle } from "./draft";
import { type Action, actions } from "./message-actions";

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
/** Sections of an AMQP message that few have. */
const SECTIONS = [
  { name: "annotations", title: "Message annotations" },
  { name: "delivery-annotations", title: "Delivery annotations" },
  { name: "footer", title: "Footer" },
];
const ALL_OTHERS = [...OTHERS, ...SECTIONS.map(({ name }) => name)];

export function OpenMessage({ session, path, part, number, close, done }: Props) {
  // An object stands for the answer: null is what has not come yet.
  const page = useData<{ message: Message | null }>(
    async (signal) => ({ message: await read(path, part, number, signal) }),
    [path, part, number],
  );
  const [error, setError] = useState<string | null>(null);
  const [language, setLanguage] = useState("Python");
  const message = page.value?.message;
  const isDead = part.endsWith("dead-letter");
  const subqueue = isDead ? part : undefined;
  const whole = message && isWhole(message);
  const why = message ? obstacle(message) : null;
  const canCopy = whole && why === null;
  const { ask, view } = useAsk();
  const settle = (action: Action) =>
    ask({
      title: `${action.name} message ${number}`,
      text: action.text,
      action: action.confirm ?? action.name,
      dismiss: action.confirm && "Keep it",
      fields: action.fields,
      run: async (typed) => {
        await action.run({ path, part, number }, typed);
        done(`Message ${number} is ${action.done}.`);
      },
    });
  const again = () => {
    if (!message) return;
    call("POST", entityPath(topicOf(path), "/messages"), draftOf(message))
      .then(() => done(`A copy of message ${number} is sent to ${topicOf(path)}.`))
      .catch((error: Error) => setError(error.message));
  };
  return (
    <Dialog title={`Message ${number}`} wide close={close}>
      <Failure error={page.error ?? error} />
      {view}
      {page.value && !message && <p class="empty">The message has gone.</p>}
      {message && (
        <>
          <BodyView message={message} />
          <div class="columns">
            <section>
              <h3>Message</h3>
              <Facts facts={Object.entries(message).filter(([name]) => !ALL_OTHERS.includes(name))} />
            </section>
            <section>
              <h3>Application properties</h3>
              {message.properties ? <Facts facts={Object.entries(message.properties)} /> : <p class="empty">None.</p>}
            </section>
            {SECTIONS.filter(({ name }) => message[name] !== undefined).map(({ name, title }) => (
              <section key={name}>
                <h3>{title}</h3>
                <Facts facts={Object.entries(message[name] as object)} />
              </section>
            ))}
          </div>
          {whole && (why ?? lacking(message)) && <p class="note">{why ?? lacking(message)}</p>}
          <footer>
            {canCopy && (
              <>
                <select aria-label="Language" value={language} onChange={(event) => setLanguage(event.currentTarget.value)}>
                  {LANGUAGES.map((language) => (
                    <option key={language}>{language}</option>
                  ))}
                </select>
                <Copy label="Copy as code" text={code(language, topicOf(path), topicOf(path) !== path, message)} />
              </>
            )}
            <a class="button" href={link(["entity", path, "why"], { sequence: String(number), part: subqueue })}>
              Why
            </a>
            {session.manage && !session["entities-only"] && why === null && (
              <a class="button" href={link(["rules"])} onClick={() => keepDraft(message)}>
                Test a rule
              </a>
            )}
            {!session["entities-only"] && (
              <a class="button" href={link(["lineage"], { entity: path, sequence: String(number) })}>
                History
              </a>
            )}
            <span class="grow" />
            {session.send && canCopy && (
              <>
                <button type="button" onClick={again}>
                  Send again
                </button>
                <a class="button" href={link(["send"], { path: topicOf(path) })} onClick={() => keepDraft(message)}>
                  Edit and send
                </a>
              </>
            )}
            {session.manage && isDead && canCopy && (
              <a
                class="button"
                href={link(["send"], { path })}
                onClick={() => keepDraft(message, { path, part, number })}
              >
                Edit and redrive
              </a>
            )}
            {session.manage &&
              actions(part).map((action) => (
                <button
                  key={action.name}
                  type="button"
                  class={action.name === "Redrive" ? "primary" : "danger"}
                  onClick={() => settle(action)}
                >
                  {action.name}
                </button>
              ))}
          </footer>
        </>
      )}
    </Dialog>
  );
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
