// Compresses what Vite has built, as the broker sends it.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

/** Bytes of all files. Each browser reads them once, and every program carries them. */
const MOST = 128 << 10;

let total = 0;
for (const name of ["index.html", "console.js", "console.css"]) {
  const file = new URL(`dist/${name}`, import.meta.url);
  const compressed = gzipSync(readFileSync(file), { level: 9 });
  writeFileSync(new URL(`dist/${name}.gz`, import.meta.url), compressed);
  rmSync(file);
  total += compressed.length;
  console.log(`${name}: ${compressed.length} bytes`);
}
if (total > MOST) throw new Error(`the console has ${total} bytes, which is above the maximum of ${MOST}`);
