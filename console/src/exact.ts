// JSON whose numbers keep the type and the digits that they have in it. JavaScript has one type of numbers: a double
// of 5.0 would become a long of 5, and a long above 2^53 another one. A browser that does not tell how a number is
// written reads it as usual.
const json = JSON as typeof JSON & { rawJSON?: (text: string) => unknown };

/** What `text` says. A fraction without a remainder becomes a typed value, a large whole number a bigint. */
export function parseExact(text: string): unknown {
  return JSON.parse(text, function (this: unknown, key: string, value: unknown, context?: { source?: string }) {
    const source = context?.source;
    if (typeof value !== "number" || source === undefined) return value;
    if (/[.eE]/.test(source)) return Number.isInteger(value) && !isTyped(this, key) ? { type: "double", value } : value;
    return Number.isSafeInteger(value) || !json.rawJSON ? value : BigInt(source);
  });
}

/** JSON of what `parseExact` has read. */
export function stringifyExact(value: unknown, indent?: number): string {
  const exact = (_: string, value: unknown) => (typeof value === "bigint" ? json.rawJSON?.(String(value)) : value);
  return JSON.stringify(value, exact, indent);
}

/** Whether a member is the value of a typed value, which says its type itself. */
function isTyped(holder: unknown, key: string): boolean {
  return key === "value" && typeof (holder as { type?: unknown }).type === "string";
}
