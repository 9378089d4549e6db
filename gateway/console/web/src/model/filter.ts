/**
 * The language of filters: `state:dead queue:mail tag:tenant=acme payload_jq:".amount > 100"`.
 *
 * Each name is a field of `POST /jobs/search` and a flag of `corvo search`, so one text is all three. It stands in the
 * address of the page. A word without a name means `payload_contains`. Pure.
 */

import facts from "../generated/facts";
import { quoted } from "./shell";
import { parseSpan } from "./format";

export type Filter = Record<string, unknown>;
type Kind = "text" | "list" | "number" | "flag" | "time" | "tag" | "choice";

interface Field {
  kind: Kind;
  flag: string; // of `corvo search`
  choices?: readonly string[];
}

const PRIORITIES = ["critical", "high", "normal"] as const;
const SORTS = ["created_at", "priority", "started_at", "completed_at", "attempt", "scheduled_at", "failed_at"] as const;

export const FIELDS: Readonly<Record<string, Field>> = {
  state: { kind: "list", flag: "--state", choices: facts.states },
  queue: { kind: "text", flag: "--queue" },
  priority: { kind: "choice", flag: "--priority", choices: PRIORITIES },
  tag: { kind: "tag", flag: "--tag" },
  payload_contains: { kind: "text", flag: "--payload-contains" },
  payload_jq: { kind: "text", flag: "--payload-jq" },
  error_contains: { kind: "text", flag: "--error-contains" },
  has_errors: { kind: "flag", flag: "--has-errors" },
  attempt_min: { kind: "number", flag: "--attempt-min" },
  attempt_max: { kind: "number", flag: "--attempt-max" },
  worker_id: { kind: "text", flag: "--worker" },
  batch_id: { kind: "text", flag: "--batch" },
  chain_id: { kind: "text", flag: "--chain" },
  parent_id: { kind: "text", flag: "--parent" },
  unique_key: { kind: "text", flag: "--unique-key" },
  job_id_prefix: { kind: "text", flag: "--id-prefix" },
  ...Object.fromEntries(
    ["created", "scheduled", "started", "completed", "expire"].flatMap((what) =>
      ["after", "before"].map((side) => [`${what}_${side}`, { kind: "time", flag: `--${what}-${side}` } as Field]),
    ),
  ),
  sort: { kind: "choice", flag: "--sort", choices: SORTS },
  order: { kind: "choice", flag: "--order", choices: ["asc", "desc"] },
};

export interface Term {
  name: string;
  value: string;
}

/** Text → terms. A value with spaces stands in double quotes, with `\"` inside. */
export function parseTerms(text: string): Term[] {
  const terms: Term[] = [];
  const pattern = /(?:([a-z_]+):)?(?:"((?:[^"\\]|\\.)*)"|(\S+))/g;
  for (const found of text.matchAll(pattern)) {
    const value = found[2] !== undefined ? found[2].replace(/\\(.)/g, "$1") : (found[3] ?? "");
    const name = found[1] ?? "payload_contains";
    terms.push(found[1] && !(found[1] in FIELDS) && found[2] === undefined
      ? { name: "payload_contains", value: `${found[1]}:${value}` }
      : { name, value });
  }
  return terms;
}

export function formatTerm({ name, value }: Term): string {
  const isPlain = value !== "" && !/[\s"]/.test(value);
  return `${name}:${isPlain ? value : `"${value.replace(/(["\\])/g, "\\$1")}"`}`;
}

export const formatTerms = (terms: readonly Term[]): string => terms.map(formatTerm).join(" ");

export class BadFilter extends Error {}

/** Terms → the body of a search. Times such as `1h` are before now, as on the command line. */
export function toFilter(terms: readonly Term[], now: number): Filter {
  const filter: Filter = {};
  for (const { name, value } of terms) {
    const field = FIELDS[name];
    if (!field) throw new BadFilter(`there is no filter ${name}`);
    if (field.choices && !field.choices.includes(value)) {
      throw new BadFilter(`${name}: expected one of ${field.choices.join(", ")}`);
    }
    if (field.kind === "list") {
      filter[name] = [...((filter[name] as string[] | undefined) ?? []), value];
    } else if (field.kind === "tag") {
      const tags = (filter["tags"] ??= {}) as Record<string, unknown>;
      const [key, tag] = tagOf(value);
      tags[key] = tag;
    } else {
      filter[name] = valueOf(name, field.kind, value, now);
    }
  }
  return filter;
}

function tagOf(text: string): [string, unknown] {
  const typed = /^([^=:]+):=(.*)$/s.exec(text);
  if (typed) {
    try {
      return [typed[1]!, JSON.parse(typed[2]!) as unknown];
    } catch {
      throw new BadFilter(`tag: ${typed[2]} is not a number, true or false`);
    }
  }
  const cut = text.indexOf("=");
  if (cut < 1) throw new BadFilter("tag: expected key=value");
  return [text.slice(0, cut), text.slice(cut + 1)];
}

function valueOf(name: string, kind: Kind, value: string, now: number): unknown {
  if (kind === "number") {
    if (!/^\d+$/.test(value)) throw new BadFilter(`${name}: expected a number`);
    return Number(value);
  }
  if (kind === "flag") {
    if (value !== "true" && value !== "false") throw new BadFilter(`${name}: expected true or false`);
    return value === "true";
  }
  if (kind === "time") {
    const before = parseSpan(value);
    if (before !== null) return new Date(now - before).toISOString();
    if (Number.isNaN(Date.parse(value))) throw new BadFilter(`${name}: expected a time, a date, or a span such as 1h`);
    return value;
  }
  if (value === "") throw new BadFilter(`${name}: expected a value`);
  return value;
}

/** The flags of `corvo search` and `corvo bulk` that mean the same. */
export function toFlags(terms: readonly Term[]): string {
  return terms
    .map(({ name, value }) => {
      if (name === "has_errors") return value === "true" ? "--has-errors" : "--no-errors";
      return `${FIELDS[name]?.flag ?? name} ${quoted(value)}`;
    })
    .join(" ");
}

export const valuesOf = (terms: readonly Term[], name: string): string[] =>
  terms.filter((term) => term.name === name).map((term) => term.value);

/** Adds the term, or removes it. Only states may be there several times. */
export function toggled(terms: readonly Term[], term: Term): Term[] {
  if (terms.some((one) => one.name === term.name && one.value === term.value)) {
    return terms.filter((one) => one.name !== term.name || one.value !== term.value);
  }
  const isRepeatable = FIELDS[term.name]?.kind === "list" || FIELDS[term.name]?.kind === "tag";
  return [...(isRepeatable ? terms : terms.filter((one) => one.name !== term.name)), term];
}

export const without = (terms: readonly Term[], ...names: string[]): Term[] =>
  terms.filter((term) => !names.includes(term.name));
