// Where the program `railbus` is.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

/** Whether the file can be executed. */
function isProgram(file) {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

/** The path of the program in the package of this platform, if that is installed. */
function installed() {
  try {
    return require.resolve(`@railbus/${process.platform}-${process.arch}/bin/railbus`);
  } catch {
    return undefined;
  }
}

/** `RAILBUS_BIN`, or the program of the package of this platform, or one on `PATH`. */
function findProgram() {
  if (process.env.RAILBUS_BIN) return process.env.RAILBUS_BIN;
  const folders = (process.env.PATH ?? "").split(path.delimiter).filter(Boolean);
  const found = [installed(), ...folders.map((folder) => path.join(folder, "railbus"))].find(
    // The command of this package is a script that would come back here.
    (file) => file !== undefined && isProgram(file) && fs.realpathSync(file) !== path.join(__dirname, "cli.js"),
  );
  if (found) return found;
  throw new Error(
    `the program railbus is missing: install @railbus/${process.platform}-${process.arch}, ` +
      "put the program on PATH, or name it in RAILBUS_BIN",
  );
}

exports.findProgram = findProgram;
