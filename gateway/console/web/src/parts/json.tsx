/** A viewer for JSON: folds, finds, copies, and shows numbers as they were sent. */

import { useState } from "preact/hooks";
import { Exact, stringify } from "../model/exact";
import { bytes } from "../model/format";
import { s } from "../strings";
import { CopyButton } from "./basic";

const OPEN_DEPTH = 3;
const CHILDREN_MAX = 200; // more are shown on demand
const TEXT_MAX = 2_000;

function contains(value: unknown, wanted: string): boolean {
  if (value instanceof Exact) return value.source.includes(wanted);
  if (Array.isArray(value)) return value.some((one) => contains(one, wanted));
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).some(([key, one]) => key.toLowerCase().includes(wanted) || contains(one, wanted));
  }
  return String(value).toLowerCase().includes(wanted);
}

export function Json({ title, value }: { title: string; value: unknown }) {
  const [wanted, setWanted] = useState("");
  const text = stringify(value);
  const isFound = wanted === "" || contains(value, wanted.toLowerCase());
  return (
    <div class="json" role="group" aria-label={title}>
      <header>
        <h3>{title}</h3>
        <span class="faint">{bytes(new Blob([stringify(value, 0)]).size)}</span>
        <input
          type="text"
          aria-label={s.json.find(title)}
          placeholder={s.json.placeholder}
          aria-invalid={!isFound}
          value={wanted}
          onInput={(event) => setWanted(event.currentTarget.value)}
        />
        <CopyButton text={text} label={s.json.copy(title)} />
      </header>
      <div class="tree" tabIndex={0} role="region" aria-label={title}>
        <Node value={value} depth={0} wanted={wanted.toLowerCase()} />
      </div>
    </div>
  );
}

interface NodeProps {
  name?: string;
  value: unknown;
  depth: number;
  wanted: string;
}

function Node({ name, value, depth, wanted }: NodeProps) {
  const isBranch = typeof value === "object" && value !== null && !(value instanceof Exact);
  const label = name === undefined ? null : <span class={hit(name, wanted) ? "key found" : "key"}>{name}: </span>;
  if (!isBranch) return <div class="leaf">{label}<Leaf value={value} wanted={wanted} /></div>;
  return <Branch label={label} value={value} depth={depth} wanted={wanted} />;
}

const hit = (text: string, wanted: string): boolean => wanted !== "" && text.toLowerCase().includes(wanted);

function Branch({ label, value, depth, wanted }: { label: preact.ComponentChild; value: object; depth: number; wanted: string }) {
  const [shown, setShown] = useState(CHILDREN_MAX);
  const isList = Array.isArray(value);
  const children = Object.entries(value);
  const [open, close] = isList ? "[]" : "{}";
  if (children.length === 0) return <div class="leaf">{label}{open}{close}</div>;
  const isOpen = depth < OPEN_DEPTH || (wanted !== "" && contains(value, wanted));
  return (
    <details open={isOpen}>
      <summary>
        {label}
        {open}
        <span class="faint">{isList ? s.json.items(children.length) : s.json.keys(children.length)}</span>
      </summary>
      {children.slice(0, shown).map(([key, one]) => (
        <Node key={key} {...(isList ? {} : { name: key })} value={one} depth={depth + 1} wanted={wanted} />
      ))}
      {children.length > shown && (
        <button class="quiet" onClick={() => setShown(shown + 5 * CHILDREN_MAX)}>
          {s.json.more(children.length - shown)}
        </button>
      )}
      <span>{close}</span>
    </details>
  );
}

function Leaf({ value, wanted }: { value: unknown; wanted: string }) {
  if (value instanceof Exact) return <span class="number">{value.source}</span>;
  if (typeof value === "string") {
    const shown = value.length > TEXT_MAX ? `${value.slice(0, TEXT_MAX)}…` : value;
    return <span class={hit(value, wanted) ? "string found" : "string"}>{JSON.stringify(shown)}</span>;
  }
  return <span class={hit(String(value), wanted) ? `${typeof value} found` : typeof value}>{String(value)}</span>;
}
