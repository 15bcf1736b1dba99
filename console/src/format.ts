// Numbers, sizes and times as people read them.
import type { Typed } from "./api";
import { stringifyExact } from "./exact";

const numbers = new Intl.NumberFormat("en");

export function count(value: number): string {
  return numbers.format(value);
}

/** A number with its noun. */
export function many(value: number, noun: string, plural = `${noun}s`): string {
  return `${count(value)} ${value === 1 ? noun : plural}`;
}

export function rate(value: number): string {
  return value >= 100 ? numbers.format(Math.round(value)) : value.toFixed(value === 0 ? 0 : 1);
}

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${at === 0 ? value : value.toFixed(1)} ${units[at]}`;
}

export function age(ms: number | null): string {
  if (ms === null) return "–";
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

export function time(text: string | undefined): string {
  if (!text) return "–";
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? text : at.toLocaleString("en-GB");
}

export function typed(value: Typed | undefined): string {
  if (value === undefined || value === null) return value === null ? "null" : "";
  return typeof value === "object" ? stringifyExact(value.value) : String(value);
}
