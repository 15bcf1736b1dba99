// Every page, with traffic going on: nothing that axe finds, in light and dark, on a desk and on a phone.
"use strict";

const { PHONE, api, checkAccess, deadLetter, entity, screenshot, send, test, visit } = require("./support.js");

const PLACES = [
  { name: "overview", place: "", shows: "Longest backlogs" },
  { name: "entities", place: "entities?sort=active&order=descending", shows: "events/Subscriptions/all" },
  { name: "queue", place: entity("invoices"), shows: "Receivers" },
  { name: "topic", place: entity("events"), shows: "Subscriptions" },
  { name: "subscription", place: entity("events/Subscriptions/billing"), shows: "state = 'paid'" },
  { name: "messages", place: entity("invoices", "messages"), shows: "invoice-7" },
  { name: "dead-letters", place: entity("audit", "dead-letters"), shows: "CardRefused" },
  { name: "properties", place: entity("invoices", "settings"), shows: "max-delivery-count" },
  { name: "receivers", place: entity("orders"), shows: "peek-lock" },
  { name: "sessions", place: entity("sessions"), shows: "customer-2" },
  { name: "why", place: entity("invoices", "why"), shows: "no receiver" },
  { name: "topology", place: "topology", shows: "billing" },
  { name: "connections", place: "connections", shows: "orders" },
  { name: "send", place: "send?path=orders", shows: "Application properties" },
  { name: "rules", place: "rules", shows: "priority" },
  { name: "settings", place: "settings", shows: "Delete what the file does not have" },
  { name: "lineage", place: "lineage", shows: "it was accepted" },
  { name: "clock", place: "clock", shows: "Time of the broker" },
  { name: "snapshots", place: "snapshots", shows: "before-the-test" },
  { name: "namespace", place: "@second/", shows: "Longest backlogs" },
  { name: "faults", place: "@second/faults", shows: "full-of-holes" },
];

const RULE = { name: "full-of-holes", match: { entity: "payments", times: 2 }, effect: { refuse: "server-busy" } };

/** Events before a picture is taken. */
const POINTS = 12;

/** Whether the lines on the page have so many points. */
const hasLines = (points) => {
  const line = document.querySelector(".spark polyline");
  return line !== null && line.getAttribute("points").split(" ").length >= points;
};

/** A namespace in which something has happened. */
async function prepare(client) {
  const invoices = Array.from({ length: 40 }, (_, n) => ({
    messageId: `invoice-${n}`,
    subject: n % 3 === 0 ? "reminder" : "invoice",
    contentType: "application/json",
    body: { invoice: 1000 + n, customer: `C-${n % 7}`, amount: 19.5 * n, items: [{ sku: "A-1", quantity: n }] },
    applicationProperties: { state: n % 2 ? "paid" : "open", region: "eu" },
  }));
  await send(client, "invoices", ...invoices);
  await send(client, "events", ...invoices.slice(0, 12));
  const payments = Array.from({ length: 9 }, (_, n) => ({ messageId: `payment-${n}`, body: `payment ${n}` }));
  await send(client, "audit", ...payments);
  await deadLetter(client, "audit", 6, "CardRefused", "the bank has refused the card");
  await deadLetter(client, "audit", 3, "Unreadable", "the message has no account");
  const later = { scheduledEnqueueTimeUtc: new Date(Date.now() + 3_600_000) };
  await send(client, "invoices", { body: "later", ...later }, { body: "later still", ...later });
  await send(client, "sessions", ...[1, 2, 3].map((n) => ({ sessionId: `customer-${n}`, body: `${n}` })));
  // Held until the client is closed.
  await client.acceptSession("sessions", "customer-2");
}

const LOOKS = [
  { name: "light", options: { colorScheme: "light" } },
  { name: "dark", options: { colorScheme: "dark" } },
  { name: "phone", options: { colorScheme: "light", viewport: PHONE } },
];

for (const look of LOOKS) {
  test(`axe finds nothing on any page, and none is too wide: ${look.name}`, async ({ begin, broker, client, open }) => {
    await prepare(client);
    await api(broker, "POST", "namespaces/default/snapshots", { name: "before-the-test" });
    await api(broker, "POST", "namespaces/default/fork", { name: "second" });
    begin();
    const page = await open(look.options);
    for (const { name, place, shows } of PLACES) {
      if (name === "faults") await api(broker, "POST", "namespaces/second/faults", RULE);
      await visit(page, broker, place);
      await page.getByText(shows, { exact: false }).locator("visible=true").first().waitFor();
      // Charts have a line once there are some events.
      if (name === "overview") await page.waitForFunction(hasLines, POINTS);
      await checkAccess(page, `${name}, ${look.name}`);
      const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (width > 0) page.faults.push(`${name} is ${width} pixels too wide: ${look.name}`);
      await screenshot(page, `${name}-${look.name}`);
    }
    await api(broker, "DELETE", "namespaces/second/faults");
    await visit(page, broker, entity("invoices", "messages"));
    await page.getByRole("button", { name: "2", exact: true }).click();
    await page.getByRole("dialog").getByText("Application properties").waitFor();
    await checkAccess(page, `a message, ${look.name}`);
    await screenshot(page, `message-${look.name}`);
  });
}
