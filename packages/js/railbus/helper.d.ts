import type { Broker, Options } from "./index.js";

/** Starts a broker before the tests of a file or a `describe`, and stops it after them. */
export function useBroker(options?: Options): { readonly broker: Broker };
