// An environment of jest with a broker for the tests of a file: `@jest-environment railbus/jest`.
//
// The broker is the global `railbus`. Its options are `railbus` in `testEnvironmentOptions`.
"use strict";

const { TestEnvironment } = require("jest-environment-node");
const { start } = require("./index.js");

module.exports = class RailbusEnvironment extends TestEnvironment {
  #options;
  #since = 0;

  constructor(config, context) {
    super(config, context);
    this.#options = config.projectConfig.testEnvironmentOptions.railbus;
  }

  async setup() {
    await super.setup();
    this.global.railbus = await start(this.#options);
  }

  async teardown() {
    await this.global.railbus?.stop();
    await super.teardown();
  }

  /** A failed test shows what the broker logged meanwhile. */
  handleTestEvent(event) {
    if (event.name === "test_start") this.#since = this.global.railbus.logSize;
    if (event.name === "test_done" && event.test.errors.length > 0) {
      this.global.console.error(`log of railbus:\n${this.global.railbus.log(this.#since)}`);
    }
  }
};
