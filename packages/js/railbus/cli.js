#!/usr/bin/env node
// The command `railbus`: runs the program of the package of this platform.
"use strict";

const { spawn } = require("node:child_process");
const { findProgram } = require("./program.js");

const child = spawn(findProgram(), process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`railbus: ${error.message}`);
  process.exitCode = 1;
});
child.on("exit", (code) => {
  process.exitCode = code ?? 1;
});
