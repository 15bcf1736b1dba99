// Tests one after the other in one namespace, which is reset before each, beside those of other files.

import { createNamespace } from "railbus";
import { afterAll, beforeAll, beforeEach, inject, test } from "vitest";
import { seesOnlyItsOwnMessages, seesOnlyItsOwnTime } from "./messages.mjs";

/** Fifty tests, from a number on. */
export function fiftyAfterResets(first) {
  let namespace;
  beforeAll(async () => {
    namespace = await createNamespace(inject("address"));
  });
  beforeEach(() => namespace.reset());
  afterAll(() => namespace.delete());
  const numbers = [...Array(50).keys()].map((number) => first + number);
  test.for(numbers)("after a reset %i", async (number) => {
    await seesOnlyItsOwnMessages(namespace, `reset ${number}`);
    await seesOnlyItsOwnTime(namespace, number);
  });
}
