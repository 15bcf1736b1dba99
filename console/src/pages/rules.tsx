// A tester of rules: a filter and an action against a message, while they are typed. The message is a sample, or the
// one that was open when the page was asked for.
import { useEffect, useState } from "preact/hooks";
import type { Typed } from "../api";
import { stringifyExact } from "../exact";
import { typed } from "../format";
import { testRule } from "../rule-test";
import { Table } from "../table";
import { Badge, Failure, Panel } from "../ui";
import { takeDraft } from "./draft";

const SAMPLE = `{
  "subject": "order",
  "properties": { "color": "red", "quantity": 5 }
}`;

/** After this pause the test is made. */
const PAUSE_MS = 200;

interface Report {
  verdict?: "match" | "no-match" | "error";
  reason?: string;
  changes?: { property: string; before?: Typed; after?: Typed }[];
  in?: string;
  error?: string;
  position?: number;
}

export function Rules() {
  const [filter, setFilter] = useState("color = 'red' AND quantity > 3");
  const [action, setAction] = useState("SET priority = 'high'");
  const [message, setMessage] = useState(() => {
    const kept = takeDraft()?.message;
    return kept ? stringifyExact(kept, 2) : SAMPLE;
  });
  const [report, setReport] = useState<Report | null>(null);
  useEffect(() => {
    const controller = new AbortController();
    const timer = setTimeout(() => {
      testRule<Report>(filter, action, message, controller.signal)
        .then(setReport)
        .catch((error: Error) => {
          if (!controller.signal.aborted) setReport({ error: error.message });
        });
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [filter, action, message]);
  return (
    <>
      <h1>Rules</h1>
      <div class="columns">
        <Panel title="Rule">
          <div class="sheet">
            <label>
              Filter in SQL
              <textarea
                rows={4}
                spellcheck={false}
                aria-invalid={report?.in === "filter"}
                value={filter}
                onInput={(event) => setFilter(event.currentTarget.value)}
              />
            </label>
            {report?.in === "filter" && <Place text={filter} report={report} />}
            <label>
              Action in SQL
              <textarea
                rows={3}
                spellcheck={false}
                aria-invalid={report?.in === "action"}
                value={action}
                onInput={(event) => setAction(event.currentTarget.value)}
              />
            </label>
            {report?.in === "action" && <Place text={action} report={report} />}
          </div>
        </Panel>
        <Panel title="Message">
          <div class="sheet">
            <label>
              A message in JSON
              <textarea
                rows={12}
                spellcheck={false}
                value={message}
                onInput={(event) => setMessage(event.currentTarget.value)}
              />
            </label>
          </div>
        </Panel>
      </div>
      <Panel title="Result">
        <div aria-live="polite" class="result">
          {report && <Result report={report} />}
        </div>
      </Panel>
    </>
  );
}

function Result({ report }: { report: Report }) {
  if (report.error) return <Failure error={report.error} />;
  const tone = report.verdict === "match" ? "good" : report.verdict === "error" ? "bad" : "";
  return (
    <>
      <p>
        <Badge text={report.verdict === "no-match" ? "no match" : (report.verdict ?? "")} tone={tone} /> {report.reason}
      </p>
      {report.changes && report.changes.length > 0 && (
        <Table
          rows={report.changes}
          id={(change) => change.property}
          columns={[
            { name: "Property", cell: (change) => change.property },
            { name: "Before", cell: (change) => typed(change.before) },
            { name: "After", cell: (change) => typed(change.after) },
          ]}
        />
      )}
    </>
  );
}

/** The text with a mark at the place of its error. */
function Place({ text, report }: { text: string; report: Report }) {
  if (report.position === undefined) return null;
  const all = [...text];
  const at = Math.max(report.position - 1, 0);
  return (
    <pre class="place">
      {all.slice(0, at).join("")}
      <mark>{all[at] ?? "␣"}</mark>
      {all.slice(at + 1).join("")}
    </pre>
  );
}
