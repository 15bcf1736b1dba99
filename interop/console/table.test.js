// The table of entities, sorted, filtered and paged by clicking, and a body as a tree of JSON.
"use strict";

const assert = require("node:assert/strict");
const { api, entity, send, test, visit } = require("./support.js");

/** Queues beside those of entities.json: more than a page has. */
const MADE = 60;

/** The names in the first column. */
function names(page) {
  return page.locator("tbody tr td:first-child a").allTextContents();
}

/** Waits until the first rows are those of `expected`, and fails with the rows that there are. */
async function begins(page, ...expected) {
  const shows = (expected) => {
    const rows = Array.from(document.querySelectorAll("tbody tr td:first-child a"), (link) => link.textContent);
    return expected.every((name, at) => rows[at] === name);
  };
  await page.waitForFunction(shows, expected).catch(() => undefined);
  assert.deepEqual((await names(page)).slice(0, expected.length), expected);
}

/** Clicks the heading of a column, which then says how the table is sorted by it. */
async function sort(page, name, order) {
  await page.getByRole("columnheader").getByRole("button", { name, exact: true }).click();
  await page.locator(`th[aria-sort="${order}"]`, { hasText: name }).waitFor();
}

test("the table of entities is sorted, filtered and paged by clicking", async ({ broker, client, open }) => {
  for (let n = 10; n < 10 + MADE; n += 1) await api(broker, "PUT", `entities/made-${n}`, { kind: "queue" });
  await send(client, "payments", ...["a", "b", "c"].map((body) => ({ body })));
  await send(client, "made-42", { body: "a" }, { body: "b" });
  await send(client, "audit", { body: "one" });
  const page = await open();
  await visit(page, broker, "entities");
  // Six queues, a topic and its two subscriptions are there besides.
  await page.getByRole("heading", { name: `${MADE + 9} entities` }).waitFor();
  await begins(page, "audit", "events");
  await sort(page, "Entity", "descending");
  await begins(page, "sessions", "payments", "orders");
  await sort(page, "Active", "descending");
  await begins(page, "payments", "made-42", "audit");
  await sort(page, "Active", "ascending");
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByText(`51–${MADE + 9} of ${MADE + 9}`).waitFor();
  await page.waitForFunction((rows) => document.querySelectorAll("tbody tr").length === rows, MADE + 9 - 50);
  assert.deepEqual((await names(page)).slice(-3), ["audit", "made-42", "payments"]);
  assert.equal(await page.getByRole("button", { name: "Next" }).isDisabled(), true);
  await page.getByRole("button", { name: "Back" }).click();
  await page.getByText(`1–50 of ${MADE + 9}`).waitFor();
  assert.equal(await page.getByRole("button", { name: "Back" }).isDisabled(), true);
  await page.getByLabel("Search by name").fill("made-4");
  await page.getByRole("heading", { name: "10 entities" }).waitFor();
  await sort(page, "Active", "descending");
  await begins(page, "made-42");
  await page.getByLabel("Search by name").fill("");
  await page.getByLabel("Kind").selectOption("Subscriptions");
  await page.getByRole("heading", { name: "2 entities" }).waitFor();
  await sort(page, "Entity", "ascending");
  await begins(page, "events/Subscriptions/all", "events/Subscriptions/billing");
  await page.getByLabel("Search by name").fill("nothing");
  await page.getByText("No entity fits.").waitFor();
});

test("a body of JSON is shown as a tree that folds, as text and as bytes", async ({ broker, client, open }) => {
  const order = { order: 7, lines: [{ sku: "A-1", paid: true, note: null }] };
  await send(client, "orders", { body: order }, { body: Buffer.from("no {json") });
  const page = await open();
  await visit(page, broker, entity("orders", "messages"));
  await page.getByRole("button", { name: "1", exact: true }).click();
  const body = page.getByRole("region", { name: "Body of the message" });
  const view = (name) => page.getByRole("dialog").getByRole("button", { name, exact: true });
  await body.waitFor();
  assert.equal(await view("JSON").getAttribute("aria-pressed"), "true");
  assert.deepEqual(await body.locator("summary").allTextContents(), ["{2}", "lines: [1]", "0: {3}"]);
  assert.deepEqual(await body.locator(".key").allTextContents(), ["order: ", "lines: ", "0: ", "sku: ", "paid: ", "note: "]);
  assert.deepEqual(await body.locator(".value").allTextContents(), ["7", '"A-1"', "true", "null"]);
  await body.locator("summary", { hasText: "lines" }).click();
  await body.getByText('"A-1"').waitFor({ state: "hidden" });
  await body.locator("summary", { hasText: "lines" }).click();
  await body.getByText('"A-1"').waitFor();
  await view("Text").click();
  assert.equal(await body.locator("pre").textContent(), JSON.stringify(order));
  await view("Hex").click();
  await body.getByText("000000  7b 22 6f 72").waitFor();
  await view("JSON").click();
  await body.getByText('"A-1"').waitFor();
  await view("Close").click();
  await page.getByRole("button", { name: "2", exact: true }).click();
  await body.getByText("no {json").waitFor();
  assert.equal(await view("JSON").count(), 0);
});
