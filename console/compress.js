// Compresses what Vite has built, as the broker sends it.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

for (const name of ["index.html", "console.js", "console.css"]) {
  const file = new URL(`dist/${name}`, import.meta.url);
  const compressed = gzipSync(readFileSync(file), { level: 9 });
  writeFileSync(new URL(`dist/${name}.gz`, import.meta.url), compressed);
  rmSync(file);
  console.log(`${name}: ${compressed.length} bytes`);
}
