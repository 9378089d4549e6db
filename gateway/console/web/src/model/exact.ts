/** JSON whose large numbers stay as they were sent: a payload may hold ids beyond 2^53. */

export class Exact {
  constructor(readonly source: string) {}
}

type Reviver = (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown;

function isAsWritten(value: number, source: string): boolean {
  return String(value) === source || !/\d{16}/.test(source.replace(/[.eE+-]/g, ""));
}

const keepExact: Reviver = (_key, value, context) =>
  typeof value === "number" && context?.source !== undefined && !isAsWritten(value, context.source)
    ? new Exact(context.source)
    : value;

export function parseExact(text: string): unknown {
  // Only long runs of digits can lose any: the reviver is slow on large documents.
  return /\d{16}/.test(text) ? JSON.parse(text, keepExact as (key: string, value: unknown) => unknown) : JSON.parse(text);
}

/** Of a field whose last digits do not matter, such as a time in nanoseconds. */
export const rounded = (value: unknown): number => (value instanceof Exact ? Number(value.source) : Number(value));

/** As JSON again, with the numbers as they came. */
export function stringify(value: unknown, indent = 2, depth = 0): string {
  if (value instanceof Exact) return value.source;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const inner = " ".repeat(indent * (depth + 1));
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const parts = Array.isArray(value)
    ? value.map((one) => stringify(one, indent, depth + 1))
    : Object.entries(value).map(
        ([key, one]) => `${JSON.stringify(key)}:${indent ? " " : ""}${stringify(one, indent, depth + 1)}`,
      );
  if (parts.length === 0) return `${open}${close}`;
  if (indent === 0) return `${open}${parts.join(",")}${close}`;
  return `${open}\n${parts.map((part) => inner + part).join(",\n")}\n${" ".repeat(indent * depth)}${close}`;
}
