// Where the reader is: the part of the address behind `#`, as words and parameters.
import { useEffect, useState } from "preact/hooks";

export interface Place {
  words: string[];
  parameters: URLSearchParams;
}

function read(): Place {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const words = (path ?? "").split("/").filter(Boolean);
  return { words: words.map(decode), parameters: new URLSearchParams(query ?? "") };
}

function decode(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

export function usePlace(): Place {
  const [place, setPlace] = useState(read);
  useEffect(() => {
    const update = () => setPlace(read());
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  return place;
}

/** The address of a place. Empty parameters are left out. */
export function link(words: string[], parameters: Record<string, string | undefined> = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value) query.set(name, value);
  const text = query.toString();
  return "#/" + words.map(encodeURIComponent).join("/") + (text ? "?" + text : "");
}

export function go(address: string) {
  location.hash = address;
}
