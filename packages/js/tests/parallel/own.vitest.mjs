// A hundred tests at the same time on one broker, each in a namespace of its own.

import { createNamespace } from "railbus";
import { inject, test } from "vitest";
import { seesOnlyItsOwnMessages } from "./messages.mjs";

test.concurrent.for([...Array(100).keys()])("in a namespace of its own %i", async (number) => {
  const namespace = await createNamespace(inject("address"));
  await seesOnlyItsOwnMessages(namespace, `own ${number}`);
  await namespace.delete();
});
