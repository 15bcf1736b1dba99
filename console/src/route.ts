// Where the reader is: the part of the address behind `#`, as words and parameters. A first word such as `@shop`
// names the namespace; without one it is that of the session.
import { useEffect, useState } from "preact/hooks";

export interface Place {
  words: string[];
  parameters: URLSearchParams;
}

/** What is behind `#`: the namespace, if one is named, and the place in it. */
function read(): Place & { namespace: string } {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const words = (path ?? "").split("/").filter(Boolean).map(decode);
  const named = words[0]?.startsWith("@") ? words.shift()!.slice(1) : "";
  // Browsers take these out of addresses.
  const namespace = named === "." || named === ".." ? "" : named;
  return { namespace, words, parameters: new URLSearchParams(query ?? "") };
}

function decode(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

/** The namespace that the address names; empty if it names none. */
export const namespace = read().namespace;

// In another namespace the page begins anew, so nothing that is under way goes on there.
addEventListener("hashchange", () => {
  if (read().namespace !== namespace) location.reload();
});

export function usePlace(): Place {
  const [place, setPlace] = useState<Place>(read);
  useEffect(() => {
    const update = () => setPlace(read());
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  return place;
}

/** The address of a place. Empty parameters are left out. */
export function link(
  words: string[],
  parameters: Record<string, string | undefined> = {},
  inNamespace = namespace,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value) query.set(name, value);
  const text = query.toString();
  const all = inNamespace ? [`@${inNamespace}`, ...words.map(encodeURIComponent)] : words.map(encodeURIComponent);
  return "#/" + all.join("/") + (text ? "?" + text : "");
}

export function go(address: string) {
  location.hash = address;
}
