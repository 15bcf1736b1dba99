// A hundred tests one after the other in one namespace, which is reset before each, beside those of other files.

import { createNamespace } from "railbus";
import { afterAll, beforeAll, beforeEach, inject, test } from "vitest";
import { seesOnlyItsOwnMessages } from "./messages.mjs";

let namespace;
beforeAll(async () => {
  namespace = await createNamespace(inject("address"));
});
beforeEach(() => namespace.reset());
afterAll(() => namespace.delete());

test.for([...Array(100).keys()])("after a reset %i", (number) => seesOnlyItsOwnMessages(namespace, `reset ${number}`));
