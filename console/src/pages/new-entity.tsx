// Makes a queue, a topic or a subscription.
import { useState } from "preact/hooks";
import { call, entityPath } from "../api";
import { go, link } from "../route";
import { Dialog, Failure } from "../ui";

export function NewEntity({ close }: { close: () => void }) {
  const [kind, setKind] = useState("queue");
  const [topic, setTopic] = useState("");
  const [name, setName] = useState("");
  const [hasSessions, setSessions] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const submit = (event: Event) => {
    event.preventDefault();
    const path = kind === "subscription" ? `${topic}/Subscriptions/${name}` : name;
    const settings = kind === "topic" || !hasSessions ? {} : { "requires-session": true };
    call("PUT", entityPath(path), { kind, ...settings }, { isNew: true })
      .then(() => go(link(["entity", path])))
      .catch((error: Error) => setError(error.message));
  };
  return (
    <Dialog title="New entity" close={close}>
      <form onSubmit={submit}>
        <label>
          Kind
          <select value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
            <option value="queue">Queue</option>
            <option value="topic">Topic</option>
            <option value="subscription">Subscription</option>
          </select>
        </label>
        {kind === "subscription" && (
          <label>
            Topic
            <input required value={topic} onInput={(event) => setTopic(event.currentTarget.value)} />
          </label>
        )}
        <label>
          Name
          <input required value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        {kind !== "topic" && (
          <label class="check">
            <input type="checkbox" checked={hasSessions} onChange={(event) => setSessions(event.currentTarget.checked)} />
            Requires sessions
          </label>
        )}
        <Failure error={error} />
        <footer>
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Create
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
