// Three files with names that do not change: the broker embeds exactly these.
import { defineConfig } from "vite";

export default defineConfig({
  base: "/$railbus/console/",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    outDir: "dist",
    emptyOutDir: false,
    target: "es2022",
    modulePreload: false,
    rollupOptions: {
      output: { entryFileNames: "console.js", assetFileNames: "console[extname]", inlineDynamicImports: true },
    },
  },
});
