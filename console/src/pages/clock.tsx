// The clock of the broker, and that of the namespace, which can be ahead of it: shown, and moved if it is virtual.
import { useState } from "preact/hooks";
import { call, get, namespacePath } from "../api";
import { useData } from "../data";
import { time } from "../format";
import { Failure, Figure, Panel, useAsk } from "../ui";
import { DEFAULT } from "./namespaces";

interface Reading {
  now: string;
  offset: string;
  frozen: boolean;
}

export function Clock({ name }: { name: string }) {
  // From the default namespace the whole broker can be moved; other clocks can be moved alone.
  const [isAlone, setAlone] = useState(name !== DEFAULT);
  const path = isAlone ? namespacePath(name, "clock") : "clock";
  const page = useData<Reading>((signal) => get(path, signal), [path], true);
  const [span, setSpan] = useState("PT1H");
  const [error, setError] = useState<string | null>(null);
  const { ask, view } = useAsk();
  const change = (body: unknown) => {
    setError(null);
    call("POST", path, body)
      .then(() => page.reload())
      .catch((error: Error) => setError(error.message));
  };
  const advance = () =>
    ask({
      title: "Advance the clock",
      text: `${span} pass at once ${isAlone ? `in the namespace ${name}` : "in all namespaces"}: locks end, messages expire and schedules fall due. This cannot be undone.`,
      action: "Advance",
      run: async () => {
        await call("POST", path, { advance: span });
        page.reload();
      },
    });
  const reading = page.value;
  return (
    <>
      <h1>Clock</h1>
      {name === DEFAULT && (
        <div class="toolbar">
          <select
            aria-label="Whose clock"
            value={isAlone ? "alone" : "all"}
            onChange={(event) => setAlone(event.currentTarget.value === "alone")}
          >
            <option value="all">The whole broker</option>
            <option value="alone">The namespace {name} alone</option>
          </select>
        </div>
      )}
      {view}
      <Failure error={page.error ?? error} />
      {reading && (
        <>
          <div class="figures">
            <Figure
              name={isAlone ? `Time of ${name}` : "Time of the broker"}
              value={time(reading.now)}
              note={reading.frozen ? "frozen" : "runs"}
            />
            <Figure name="Ahead of real time" value={reading.offset} />
          </div>
          <Panel title="Move the clock">
            <form
              class="toolbar"
              onSubmit={(event) => {
                event.preventDefault();
                advance();
              }}
            >
              <input
                aria-label="Duration in ISO 8601"
                required
                value={span}
                onInput={(event) => setSpan(event.currentTarget.value)}
              />
              <button type="submit" class="primary">
                Advance
              </button>
              {!isAlone && (
                <button type="button" onClick={() => change({ freeze: !reading.frozen })}>
                  {reading.frozen ? "Run" : "Freeze"}
                </button>
              )}
            </form>
            <p class="note">
              {isAlone
                ? `Time passes in the namespace ${name} alone: locks, times to live and schedules that become due are over.`
                : "Time passes in all namespaces."}{" "}
              The clock moves only in a broker that is started with --virtual-clock.
            </p>
          </Panel>
        </>
      )}
    </>
  );
}
