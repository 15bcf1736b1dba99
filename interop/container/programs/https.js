"use strict";

// Asks for the URL in its argument, trusting what Node.js trusts by itself.

fetch(process.argv[2]).then((answer) => {
  process.exitCode = answer.ok ? 0 : 1;
});
