// Figures that change while they are looked at, and a connection that is cut.
"use strict";

const assert = require("node:assert/strict");
const { Broker, api, ask, checkAccess, entity, send, signIn, test, visit } = require("./support.js");

test("counts follow what an SDK sends", async ({ broker, client, open }) => {
  const page = await open();
  const overview = page.locator(".figure", { hasText: "Active messages" }).locator("strong");
  await overview.waitFor();
  await send(client, "orders", { body: "a" }, { body: "b" });
  await page.waitForFunction(() => document.querySelectorAll(".figure strong")[1]?.textContent === "2");
  await visit(page, broker, "entities?search=orders");
  await page.getByRole("row", { name: /orders queue 2/ }).waitFor();
  await visit(page, broker, entity("orders"));
  await page.locator(".figure", { hasText: "Active" }).getByText("2", { exact: true }).first().waitFor();
  await send(client, "orders", { body: "c" });
  await page.locator(".figure", { hasText: "Active" }).getByText("3", { exact: true }).first().waitFor();
});

test("receivers, locks that count down, and sessions with their holders are shown", async ({ broker, client, open }) => {
  await send(client, "orders", { body: "a" });
  const receiver = client.createReceiver("orders");
  const [locked] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 10_000 });
  const page = await open();
  await visit(page, broker, entity("orders"));
  await page.getByRole("heading", { name: "Receivers (1)" }).waitFor();
  const row = page.locator(".panel", { hasText: "Locked messages (1)" }).getByRole("row").nth(1);
  const left = async () => Number.parseInt(await row.getByRole("cell").last().textContent());
  const first = await left();
  assert.ok(first > 0 && first <= 60, `${first} seconds`);
  await page.waitForFunction(
    (first) => Number.parseInt(document.querySelector(".panel:nth-of-type(2) tbody td:last-child")?.textContent) < first,
    first,
  );
  await receiver.completeMessage(locked);
  await page.getByText("Locked messages").waitFor({ state: "detached" });
  await receiver.close();
  await send(client, "sessions", { sessionId: "held", body: "a" }, { sessionId: "idle", body: "b" });
  const session = await client.acceptSession("sessions", "held");
  await session.setSessionState("12345");
  await visit(page, broker, entity("sessions"));
  await page.getByRole("heading", { name: "Sessions (2)" }).waitFor();
  await page.getByRole("row", { name: /^held \d+ 0 \d+ s \d+ B Show the state of held$/ }).waitFor();
  await page.getByRole("row", { name: /^idle none/ }).waitFor();
  await session.close();
});

test("the topology shows how many messages pass on each way", async ({ broker, client, open }) => {
  const page = await open();
  await visit(page, broker, "topology");
  await page.locator(".box").first().waitFor();
  let isShown = false;
  const flow = page.locator("text.flow").first();
  const shown = flow.waitFor().then(() => (isShown = true));
  while (!isShown) await send(client, "events", { body: "x", applicationProperties: { state: "paid" } });
  await shown;
  assert.match(await page.locator("text.flow").first().textContent(), /^[\d.,]+\/s$/);
});

test("the topology shows the rules of each subscription, and leads to them", async ({ broker, open }) => {
  await api(broker, "PUT", "entities/events/Subscriptions/all/Rules/second", { filter: { sql: "amount > 5" } });
  const page = await open();
  await visit(page, broker, "topology");
  const rules = page.locator("a.rules");
  await rules.getByText("2 rules").waitFor();
  const paid = rules.filter({ hasText: "paid: state = 'paid'" });
  await paid.waitFor();
  await checkAccess(page, "the rules in the topology");
  await paid.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "events/Subscriptions/billing" }).waitFor();
  await page.getByRole("heading", { name: "Rules" }).waitFor();
  await page.getByRole("cell", { name: "state = 'paid'" }).waitFor();
});

test("events that were held up and come together make no rate out of proportion", async ({ broker, open }) => {
  const overview = await api(broker, "GET", "overview");
  const event = (arrived) => `data: ${JSON.stringify({ ...overview, traffic: { ...overview.traffic, arrived } })}\n\n`;
  const page = await open();
  await page.getByText("Live", { exact: true }).waitFor();
  const headers = { "content-type": "text/event-stream" };
  await page.route("**/events", (route) => route.fulfill({ headers, body: event(0) + event(100) }));
  await page.reload();
  await page.getByText("Longest backlogs").waitFor();
  assert.equal(await page.locator(".figure", { hasText: "In, a second" }).locator("strong").textContent(), "200");
});

test("a cut connection is told, and the page comes back by itself", async ({ broker, open }) => {
  const page = await open();
  await page.getByText("Live", { exact: true }).waitFor();
  const listen = broker.address;
  await broker.stop();
  await page.getByText("Connection lost.", { exact: false }).waitFor();
  const again = await Broker.start({ listen });
  try {
    await page.getByText("Live", { exact: true }).waitFor();
    // The session of the old broker is gone: a change begins another.
    await visit(page, broker, "send?path=orders");
    await page.getByLabel("Body").fill("after the cut");
    await page.locator("main").getByRole("button", { name: "Send" }).click();
    await page.getByText("The message is stored as number 1.").waitFor();
  } finally {
    await again.stop();
  }
});

const KEYS = `
[[auth.rules]]
name = "owner"
primary-key = "key-of-the-owner"
rights = ["send", "listen", "manage"]
`;

test("a broker that restarts has ended the session, and the page leads to the sign-in", async ({ broker, open }) => {
  const page = await open();
  await signIn(page, "key-of-the-owner", "owner");
  await page.getByText("Live", { exact: true }).waitFor();
  const listen = broker.address;
  await broker.stop();
  const again = await Broker.start({ config: KEYS, listen });
  try {
    await page.getByLabel("Connection string, key or token").waitFor();
    await signIn(page, "key-of-the-owner", "owner");
    await page.getByText("Live", { exact: true }).waitFor();
  } finally {
    await again.stop();
  }
}, { config: KEYS });

test("a session that has ended leads to the sign-in", async ({ open }) => {
  const page = await open();
  await signIn(page, "key-of-the-owner", "owner");
  await page.getByText("Live", { exact: true }).waitFor();
  assert.equal(await ask(page, "DELETE", "session"), 200);
  await page.getByLabel("Connection string, key or token").waitFor();
}, { config: KEYS });

test("a broker that says nothing is told, and the page comes back by itself", async ({ broker, open }) => {
  const page = await open();
  await page.getByText("Live", { exact: true }).waitFor();
  broker.process.kill("SIGSTOP");
  try {
    await page.getByText("Connection lost.", { exact: false }).waitFor();
  } finally {
    broker.process.kill("SIGCONT");
  }
  await page.getByText("Live", { exact: true }).waitFor();
});

test("a page that nobody looks at has no stream and asks for nothing", async ({ broker, client, open }) => {
  const page = await open();
  await page.getByText("Live", { exact: true }).waitFor();
  const controller = new AbortController();
  const watch = () => fetch(`${broker.url}$railbus/events`, { signal: controller.signal });
  const viewers = await Promise.all(Array.from({ length: 63 }, watch));
  for (const viewer of viewers) assert.equal(viewer.status, 200);
  assert.equal((await watch()).status, 503);
  // Chromium takes a page for seen as long as a test holds it.
  const look = (isHidden) =>
    page.evaluate((isHidden) => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
      document.dispatchEvent(new Event("visibilitychange"));
    }, isHidden);
  await look(true);
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  // The broker has room for another viewer once it has ended the stream of the page.
  let last = await watch();
  while (last.status === 503) last = await watch();
  await send(client, "orders", { body: "a" });
  const reader = last.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let events = ""; !events.includes('"arrived":1'); ) events += (await reader.read()).value;
  assert.deepEqual(asked, []);
  controller.abort();
  await look(false);
  await page.waitForFunction(() => document.querySelectorAll(".figure strong")[1]?.textContent === "1");
});

test("a page that gets no stream says why, and gets one when there is room", async ({ broker, open }) => {
  const controller = new AbortController();
  const viewers = Array.from({ length: 64 }, () => fetch(`${broker.url}$railbus/events`, { signal: controller.signal }));
  for (const viewer of viewers) assert.equal((await viewer).status, 200);
  const page = await open();
  const refused = page.getByRole("status").getByText("No live figures: the broker has the maximum of 64 streams");
  await refused.waitFor();
  await page.getByText("There are no figures.").waitFor();
  await visit(page, broker, "entities?search=orders");
  await page.getByRole("row", { name: /orders queue/ }).waitFor();
  await refused.waitFor();
  controller.abort();
  await page.getByText("Live", { exact: true }).waitFor();
});

test("streams are bounded: a further viewer is told so, and one that leaves makes room", async ({ broker }) => {
  const open = () => {
    const controller = new AbortController();
    return fetch(`${broker.url}$railbus/events`, { signal: controller.signal }).then((answer) => ({ answer, controller }));
  };
  const viewers = [];
  for (;;) {
    const viewer = await open();
    if (viewer.answer.status === 503) {
      // Those that are told so do not use up the connections of their address.
      assert.equal(viewer.answer.headers.get("connection"), "close");
      break;
    }
    assert.equal(viewer.answer.status, 200);
    viewers.push(viewer);
  }
  assert.equal(viewers.length, 64);
  viewers.forEach((viewer) => viewer.controller.abort());
  let status = 503;
  while (status === 503) {
    const viewer = await open();
    status = viewer.answer.status;
    viewer.controller.abort();
  }
  assert.equal(status, 200);
});
