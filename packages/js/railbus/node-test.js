// A broker for the tests of a `describe` of node:test, or of a file.
"use strict";

const { after, afterEach, before, beforeEach } = require("node:test");
const { start } = require("./index.js");

/** Starts a broker before the tests and stops it after them. A failed test shows what the broker logged meanwhile. */
exports.useBroker = (options) => {
  const holder = {};
  let since = 0;
  before(async () => {
    holder.broker = await start(options);
  });
  beforeEach(() => {
    since = holder.broker.logSize;
  });
  afterEach((context) => {
    if (!context.error) return;
    for (const line of ["log of railbus:", ...holder.broker.log(since).trimEnd().split("\n")]) context.diagnostic(line);
  });
  after(() => holder.broker?.stop());
  return holder;
};
