// 200 tests at the same time on one broker, each in a namespace of its own.

import { createNamespace } from "railbus";
import { inject, test } from "vitest";
import { seesOnlyItsOwnMessages, seesOnlyItsOwnTime } from "./messages.mjs";

test.concurrent.for([...Array(200).keys()])("in a namespace of its own %i", async (number) => {
  const namespace = await createNamespace(inject("address"));
  await seesOnlyItsOwnMessages(namespace, `own ${number}`);
  await seesOnlyItsOwnTime(namespace, number);
  await namespace.delete();
});
