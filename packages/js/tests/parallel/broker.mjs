// One broker for all workers of vitest.

import { start } from "railbus";

export default async function setup(project) {
  const broker = await start({ entities: { queues: [{ name: "orders", "lock-duration": "PT1M" }, { name: "timed" }] } });
  project.provide("address", broker.address);
  return () => broker.stop();
}
