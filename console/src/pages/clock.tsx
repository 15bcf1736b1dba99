// The clock of the broker: shown, and moved if it is virtual.
import { useState } from "preact/hooks";
import { call, get } from "../api";
import { useData } from "../data";
import { time } from "../format";
import { Failure, Figure, Panel } from "../ui";

interface Reading {
  now: string;
  offset: string;
  frozen: boolean;
}

export function Clock() {
  const page = useData<Reading>((signal) => get("clock", signal), [], true);
  const [span, setSpan] = useState("PT1H");
  const [error, setError] = useState<string | null>(null);
  const change = (body: unknown) => {
    setError(null);
    call("POST", "clock", body)
      .then(() => page.reload())
      .catch((error: Error) => setError(error.message));
  };
  const reading = page.value;
  return (
    <>
      <h1>Clock</h1>
      <Failure error={page.error ?? error} />
      {reading && (
        <>
          <div class="figures">
            <Figure name="Time of the broker" value={time(reading.now)} note={reading.frozen ? "frozen" : "runs"} />
            <Figure name="Ahead of real time" value={reading.offset} />
          </div>
          <Panel title="Move the clock">
            <form
              class="toolbar"
              onSubmit={(event) => {
                event.preventDefault();
                change({ advance: span });
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
              <button type="button" onClick={() => change({ freeze: !reading.frozen })}>
                {reading.frozen ? "Run" : "Freeze"}
              </button>
            </form>
            <p class="note">The clock moves only in a broker that is started with --virtual-clock.</p>
          </Panel>
        </>
      )}
    </>
  );
}
