import { fiftyAfterResets } from "./resets.mjs";

fiftyAfterResets(150);
