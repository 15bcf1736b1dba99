#!/usr/bin/env bash
# What RAILBUS_BIN names in a test run: the program in RAILBUS_PROGRAM, saying all that it can. What it says also goes to
# a file of its own in RAILBUS_LOGS, where the run looks for secrets.
set -euo pipefail
: "${RAILBUS_PROGRAM:?the path of the railbus program}" "${RAILBUS_LOGS:?a folder}"
export RUST_LOG=trace
exec "$RAILBUS_PROGRAM" "$@" 2> >(exec tee -a "$RAILBUS_LOGS/own-$$.log" >&2)
