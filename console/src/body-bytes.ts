// The bytes of a body in the forms in which it can be edited.

export const FORMS = ["Text", "Hexadecimal", "Base 64"] as const;
export type Form = (typeof FORMS)[number];

/** Bytes of a file that are shown in hexadecimal; longer ones are shorter in base 64. */
const HEX = 64 << 10;

function base64Of(bytes: Uint8Array): string {
  let binary = "";
  // One call takes a limited number of arguments.
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(binary);
}

export function bytesOfBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/** The bytes that a text of this form stands for. */
export function parse(form: Form, text: string): Uint8Array {
  if (form === "Text") return new TextEncoder().encode(text);
  const compact = text.replace(/\s+/g, "");
  if (form === "Base 64") {
    try {
      return bytesOfBase64(compact);
    } catch {
      throw new Error("The body is not in base 64.");
    }
  }
  if (compact.length % 2 !== 0 || /[^0-9a-f]/i.test(compact)) {
    throw new Error("The body is not in hexadecimal: each byte has two digits from 0 to f.");
  }
  return Uint8Array.from(compact.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
}

/** The bytes in this form. */
export function show(form: Form, bytes: Uint8Array): string {
  if (form === "Base 64") return base64Of(bytes);
  if (form === "Hexadecimal") return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Error("The body is not text.");
  }
}

/** The form in which bytes are best edited, and the bytes in it. */
export function present(bytes: Uint8Array): { form: Form; text: string } {
  try {
    return { form: "Text", text: show("Text", bytes) };
  } catch {
    const form = bytes.length > HEX ? "Base 64" : "Hexadecimal";
    return { form, text: show(form, bytes) };
  }
}

/** The members of a message with this body. */
export function members(form: Form, text: string): Record<string, string> {
  return form === "Text" ? { body: text } : { "body-base64": base64Of(parse(form, text)) };
}
