export default {
  test: { include: ["*.vitest.mjs"], globalSetup: "./broker.mjs", maxConcurrency: 25, testTimeout: 0 },
};
