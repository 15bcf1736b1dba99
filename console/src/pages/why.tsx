// Why messages of a queue or subscription are not delivered: the next one, or the one of a sequence number.
import { useState } from "preact/hooks";
import { entityPath, get, queryText } from "../api";
import { useData } from "../data";
import { go, link } from "../route";
import { Table } from "../table";
import { Failure, Panel } from "../ui";

interface Explanation {
  "sequence-number": number | null;
  reasons: { code: string; text: string }[];
}

const PARTS = { active: "Messages", "dead-letter": "Dead letters", "transfer-dead-letter": "Failed transfers" };

export function Why({ path, parameters }: { path: string; parameters: URLSearchParams }) {
  const sequence = parameters.get("sequence") ?? "";
  const part = parameters.get("part") ?? "active";
  const [typed, setTyped] = useState(sequence);
  const query = new URLSearchParams({ part });
  if (sequence) query.set("sequence", sequence);
  const page = useData<Explanation>(
    (signal) => get(entityPath(path, `/explain?${queryText(query)}`), signal),
    [path, query.toString()],
    true,
  );
  const show = (changes: Record<string, string>) => go(link(["entity", path, "why"], { part, sequence, ...changes }));
  return (
    <>
      <form
        class="toolbar"
        onSubmit={(event) => {
          event.preventDefault();
          show({ sequence: typed.trim() });
        }}
      >
        <select aria-label="Part" value={part} onChange={(event) => show({ part: event.currentTarget.value })}>
          {Object.entries(PARTS).map(([part, name]) => (
            <option key={part} value={part}>
              {name}
            </option>
          ))}
        </select>
        <input
          inputMode="numeric"
          placeholder="Sequence number; the next one without"
          aria-label="Sequence number"
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <button type="submit">Ask</button>
      </form>
      <Failure error={page.error} />
      <Panel title={sequence ? `Why message ${sequence} is not delivered` : "Why the next message is not delivered"}>
        <Table
          empty={page.value ? "Nothing stands in its way." : "Reading…"}
          rows={page.error ? [] : (page.value?.reasons ?? [])}
          id={(reason) => reason.code + reason.text}
          columns={[
            { name: "Reason", cell: (reason) => reason.text },
            { name: "Code", cell: (reason) => <code>{reason.code}</code> },
          ]}
        />
      </Panel>
    </>
  );
}
