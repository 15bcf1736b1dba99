// Values of AMQP's types as literals of five languages. A language has no entry for a type that its SDK cannot send.
import type { Typed } from "../api";

type Scalar = string | number | bigint | boolean | null;

/** A value with its type by AMQP's name. */
export interface Value {
  type: string;
  value: Scalar;
}

/** The literal of a value of one type; null if the language cannot write this one. */
type Literal = (value: Scalar) => string | null;
export type Literals = Record<string, Literal>;

/** The type of a value: a whole number is a long and a fraction a double unless a type stands beside it. */
export function valueOf(typed: Typed): Value {
  if (typed !== null && typeof typed === "object") return { type: typed.type, value: (typed.value ?? null) as Scalar };
  if (typed === null) return { type: "null", value: null };
  if (typeof typed === "boolean" || typeof typed === "string") return { type: typeof typed, value: typed };
  return { type: typeof typed === "bigint" || Number.isInteger(typed) ? "long" : "double", value: typed };
}

/**
 * A text as a literal: the escapes of JSON are known to all five languages. What ends a line in C#, is refused in Go or
 * changes the direction of the text is escaped too.
 */
export function quoted(text: string): string {
  const hidden = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
  return JSON.stringify(text).replace(hidden, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Characters of one constant of Java, which may have 65,535 bytes. */
const JAVA_CONSTANT = 16_384;

/** A text of any length in Java. */
export function javaText(text: string): string {
  const parts = [];
  // Characters and not their halves: a half would not be the same in UTF-8.
  const all = text.length > JAVA_CONSTANT ? Array.from(text) : [];
  for (let at = 0; at < all.length; at += JAVA_CONSTANT) parts.push(quoted(all.slice(at, at + JAVA_CONSTANT).join("")));
  return parts.length > 0 ? `String.join("", ${parts.join(", ")})` : quoted(text);
}

/** Bytes in Go, where a text may have any. */
export function goBytes(base64: string): string {
  const escaped = Array.from(atob(base64), (byte) => {
    const isPlain = byte >= " " && byte <= "~" && byte !== '"' && byte !== "\\";
    return isPlain ? byte : `\\x${byte.charCodeAt(0).toString(16).padStart(2, "0")}`;
  });
  return `[]byte("${escaped.join("")}")`;
}

const millis = (value: Scalar) => Date.parse(String(value));
const text = (value: Scalar) => quoted(String(value));
const as = (before: string, after = "") => (value: Scalar) => before + value + after;
const bool: Literal = (value) => String(value);

/** The sixteen bytes of a UUID in JavaScript. */
export const jsUuid = (value: Scalar) => `Buffer.from("${String(value).replaceAll("-", "")}", "hex")`;

/** A number with a point or an exponent, so that no language takes it for a whole one. */
function fraction(value: Scalar): string {
  const digits = Object.is(value, -0) ? "-0" : String(value);
  return /[.e]/.test(digits) ? digits : `${digits}.0`;
}

/** The literal of a fraction, or the names of what no digits are. */
const real =
  (before: string, after: string, [nan, infinity, negative]: [string, string, string]): Literal =>
  (value) => {
    if (value === "NaN") return nan;
    if (value === "Infinity") return infinity;
    return value === "-Infinity" ? negative : before + fraction(value) + after;
  };

/** A char of UTF-16 by its number. */
const utf16: Literal = (value) => (String(value).length === 1 ? `(char)${String(value).charCodeAt(0)}` : null);

const PYTHON_REALS: [string, string, string] = ['float("nan")', 'float("inf")', 'float("-inf")'];
const tagged =
  (type: string, literal: Literal = String): Literal =>
  (value) =>
    `{"TYPE": "${type}", "VALUE": ${literal(value)}}`;

/** A value of the form of `tagged` has a type that a plain one does not get: a plain int is an int of AMQP. */
export const PYTHON: Literals = {
  null: () => "None",
  boolean: (value) => (value ? "True" : "False"),
  string: text,
  int: String,
  double: real("", "", PYTHON_REALS),
  ...Object.fromEntries(["byte", "short", "long", "ubyte", "ushort", "uint", "ulong"].map((type) => [type, tagged(type.toUpperCase())])),
  float: tagged("FLOAT", real("", "", PYTHON_REALS)),
  timestamp: (value) => tagged("TIMESTAMP")(millis(value)),
  uuid: (value) => `uuid.UUID(${text(value)})`,
  binary: (value) => `bytearray(base64.b64decode(${text(value)}))`,
  symbol: tagged("SYMBOL", text),
};

const JS_REALS: [string, string, string] = ["NaN", "Infinity", "-Infinity"];
const wrapped =
  (type: string, literal: Literal = String): Literal =>
  (value) =>
    `types.wrap_${type}(${literal(value)})`;

/** A whole number of eight bytes; as bytes if a number of JavaScript would be another. */
const wide: Literal = (value) => {
  if (typeof value !== "bigint") return String(value);
  const digits = BigInt.asUintN(64, value).toString(16).padStart(16, "0");
  return `Buffer.from("${digits}", "hex")`;
};

/** `types` is rhea's, which the SDK sends with: a plain whole number becomes a uint or an int. */
export const JAVASCRIPT: Literals = {
  null: () => "null",
  boolean: bool,
  string: text,
  ...Object.fromEntries(["byte", "short", "int", "ubyte", "ushort", "uint"].map((type) => [type, wrapped(type)])),
  long: wrapped("long", wide),
  ulong: wrapped("ulong", wide),
  float: wrapped("float", real("", "", JS_REALS)),
  double: (value) => (typeof value === "number" && !Number.isInteger(value) ? String(value) : wrapped("double", real("", "", JS_REALS))(value)),
  char: (value) => wrapped("char")(String(value).codePointAt(0) ?? 0),
  timestamp: (value) => `new Date(${millis(value)})`,
  uuid: wrapped("uuid", jsUuid),
  binary: (value) => `Buffer.from(${text(value)}, "base64")`,
  symbol: wrapped("symbol", text),
};

export const CSHARP: Literals = {
  null: () => "null",
  boolean: bool,
  string: text,
  ubyte: as("(byte)"),
  ushort: as("(ushort)"),
  uint: as("", "U"),
  ulong: as("", "UL"),
  byte: as("(sbyte)"),
  short: as("(short)"),
  int: String,
  long: as("", "L"),
  float: real("", "F", ["float.NaN", "float.PositiveInfinity", "float.NegativeInfinity"]),
  double: real("", "D", ["double.NaN", "double.PositiveInfinity", "double.NegativeInfinity"]),
  char: utf16,
  timestamp: (value) => `DateTimeOffset.FromUnixTimeMilliseconds(${millis(value)}).UtcDateTime`,
  uuid: (value) => `Guid.Parse(${text(value)})`,
  binary: (value) => `Convert.FromBase64String(${text(value)})`,
  duration: (value) => `System.Xml.XmlConvert.ToTimeSpan(${text(value)})`,
  "datetime-offset": (value) => `System.Xml.XmlConvert.ToDateTimeOffset(${text(value)})`,
  uri: (value) => `new Uri(${text(value)}, UriKind.RelativeOrAbsolute)`,
};

const PROTON = "org.apache.qpid.proton.amqp.";

/** Types that Java has not are those of Proton-J, which the SDK sends with. */
export const JAVA: Literals = {
  null: () => "null",
  boolean: bool,
  string: (value) => javaText(String(value)),
  ubyte: as(`${PROTON}UnsignedByte.valueOf("`, '")'),
  ushort: as(`${PROTON}UnsignedShort.valueOf("`, '")'),
  uint: as(`${PROTON}UnsignedInteger.valueOf("`, '")'),
  ulong: as(`${PROTON}UnsignedLong.valueOf("`, '")'),
  byte: as("(byte) "),
  short: as("(short) "),
  int: String,
  long: as("", "L"),
  float: real("", "F", ["Float.NaN", "Float.POSITIVE_INFINITY", "Float.NEGATIVE_INFINITY"]),
  double: real("", "D", ["Double.NaN", "Double.POSITIVE_INFINITY", "Double.NEGATIVE_INFINITY"]),
  char: utf16,
  timestamp: (value) => `new java.util.Date(${millis(value)}L)`,
  uuid: (value) => `java.util.UUID.fromString(${text(value)})`,
  binary: (value) => `new ${PROTON}Binary(java.util.Base64.getDecoder().decode(${javaText(String(value))}))`,
  symbol: (value) => `${PROTON}Symbol.valueOf(${text(value)})`,
  duration: (value) => `java.time.Duration.parse(${text(value)})`,
  "datetime-offset": (value) => `java.time.OffsetDateTime.parse(${text(value)})`,
  uri: (value) => `java.net.URI.create(${text(value)})`,
};

const GO_TYPES = { ubyte: "uint8", ushort: "uint16", uint: "uint32", ulong: "uint64", byte: "int8", short: "int16", int: "int32", long: "int64" };

export const GO: Literals = {
  null: () => "nil",
  boolean: bool,
  string: text,
  ...Object.fromEntries(Object.entries(GO_TYPES).map(([type, name]) => [type, as(`${name}(`, ")")])),
  float: real("float32(", ")", ["float32(math.NaN())", "float32(math.Inf(1))", "float32(math.Inf(-1))"]),
  double: real("float64(", ")", ["math.NaN()", "math.Inf(1)", "math.Inf(-1)"]),
  timestamp: (value) => `time.UnixMilli(${millis(value)})`,
  uuid: (value) => `amqp.UUID{${String(value).replaceAll("-", "").match(/../g)?.map((byte) => `0x${byte}`).join(", ")}}`,
  binary: (value) => goBytes(String(value)),
  symbol: (value) => `amqp.Symbol(${text(value)})`,
};
