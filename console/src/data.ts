// Data of a page: read when it opens, when what it depends on changes, and with each live event.
import { useEffect, useRef, useState } from "preact/hooks";
import { useLive } from "./live";

export interface Data<T> {
  value: T | null;
  error: string | null;
  reload: () => void;
}

/** What `read` returns. With `isLive` it is read again with each event, one read at a time. */
export function useData<T>(read: (signal: AbortSignal) => Promise<T>, keys: unknown[], isLive = false): Data<T> {
  const [state, setState] = useState<{ value: T | null; error: string | null }>({ value: null, error: null });
  const [turn, setTurn] = useState(0);
  const { tick } = useLive();
  const isReading = useRef(false);
  // What was read for earlier keys is dropped.
  const generation = useRef(0);
  const load = (signal: AbortSignal) => {
    const own = generation.current;
    const isCurrent = () => own === generation.current;
    isReading.current = true;
    read(signal)
      .then((value) => isCurrent() && setState({ value, error: null }))
      .catch((error: Error) => isCurrent() && setState((old) => ({ value: old.value, error: error.message })))
      .finally(() => {
        if (isCurrent()) isReading.current = false;
      });
  };
  useEffect(() => {
    const controller = new AbortController();
    load(controller.signal);
    return () => {
      generation.current += 1;
      controller.abort();
    };
  }, [...keys, turn]);
  useEffect(() => {
    if (!isLive || tick === 0 || isReading.current) return;
    load(new AbortController().signal);
  }, [tick]);
  return { ...state, reload: () => setTurn((turn) => turn + 1) };
}
