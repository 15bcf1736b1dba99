// What a namespace of this package promises. Run with the installed package.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { start } from "railbus";

describe("a namespace", () => {
  let broker;
  before(async () => {
    broker = await start({ entities: { queues: [{ name: "orders" }] } });
  });
  after(() => broker.stop());

  test("has the entities of the broker", async () => {
    const namespace = await broker.createNamespace();
    assert.ok(namespace.connectionString.includes(`SharedAccessKeyName=${namespace.name};`));
    const { reasons } = await namespace.explain("orders");
    assert.deepEqual(reasons.map((reason) => reason.code), ["empty"]);
  });

  test("that is deleted is gone", async () => {
    const namespace = await broker.createNamespace({ name: "left" });
    await namespace.delete();
    await assert.rejects(namespace.reset(), /left/);
  });

  test("that is like no other is empty", async () => {
    const namespace = await broker.createNamespace({ like: null });
    await assert.rejects(namespace.explain("orders"), /the entity does not exist/);
  });

  test("has fault rules of its own", async () => {
    const [namespace, other] = [await broker.createNamespace(), await broker.createNamespace()];
    await namespace.fault("busy", { refuse: "server-busy" }, { entity: "orders", "message-id": "7", times: 1 });
    assert.deepEqual(await other.faults(), []);
    const [rule] = await namespace.faults();
    assert.deepEqual([rule.name, rule.match["message-id"], rule.injected], ["busy", "7", 0]);
    await namespace.clearFaults();
    assert.deepEqual(await namespace.faults(), []);
    await namespace.fault("again", "deliver-again");
    await namespace.reset();
    assert.deepEqual(await namespace.faults(), []);
  });

  test("has a clock of its own", async () => {
    const [namespace, other] = [await broker.createNamespace(), await broker.createNamespace()];
    const clocks = [await namespace.advance(24 * 3600 * 1000), await other.advance("PT1H"), await namespace.advance(0)];
    assert.deepEqual(clocks.map((clock) => clock.offset), ["PT24H", "PT1H", "PT24H"]);
  });

  test("goes back to what was kept", async () => {
    const namespace = await broker.createNamespace();
    const { name, entities } = await namespace.snapshot("full");
    assert.deepEqual([name, entities], ["full", 1]);
    await namespace.reset();
    await namespace.restore("full");
    await assert.rejects(namespace.snapshot("full"), /already/);
    await assert.rejects(namespace.restore("gone"), /no snapshot 'gone'/);
  });

  test("that is refused is an error", async () => {
    await assert.rejects(broker.createNamespace({ name: "a/b" }), /a\/b/);
    const namespace = await broker.createNamespace();
    await assert.rejects(broker.createNamespace({ name: namespace.name }), /exists already/);
    await assert.rejects(broker.createNamespace({ like: "nowhere" }), /nowhere/);
    await assert.rejects(namespace.fault("worst", "explode"), /explode/);
  });
});
