// A broker for the tests of a file or a `describe` of vitest.

import { afterAll, beforeAll, beforeEach } from "vitest";
import { start } from "./index.js";

/** Starts a broker before the tests and stops it after them. A failed test shows what the broker logged meanwhile. */
export function useBroker(options) {
  const holder = {};
  beforeAll(async () => {
    holder.broker = await start(options);
  });
  beforeEach((context) => {
    const since = holder.broker.logSize;
    context.onTestFailed(() => console.error(`log of railbus:\n${holder.broker.log(since)}`));
  });
  afterAll(() => holder.broker?.stop());
  return holder;
}
