/** The box of filters: a text in the language of `model/filter.ts`, and buttons that write it. */

import { useEffect, useState } from "preact/hooks";
import { BadFilter, FIELDS, formatTerm, formatTerms, parseTerms, toFilter, toggled, valuesOf, type Filter, type Term } from "../model/filter";
import facts from "../generated/facts";
import { place, setParams } from "../shell/router";
import { s } from "../strings";
import { useSettled } from "./basic";
import { Icon } from "./icons";

export interface Filtered {
  text: string;
  terms: readonly Term[];
  filter: Filter | null; // null: the text is wrong
  error: string;
}

/** What the address asks for, with the terms that the page adds. Times before now are fixed when the text changes. */
export function useFilter(fixed: readonly Term[]): Filtered {
  const { params } = place.use();
  const text = params.get("q") ?? "";
  const [now, setNow] = useState(Date.now());
  useEffect(() => setNow(Date.now()), [text]);
  const terms = [...fixed, ...parseTerms(text)];
  try {
    return { text, terms, filter: toFilter(terms, now), error: "" };
  } catch (error) {
    if (!(error instanceof BadFilter)) throw error;
    return { text, terms, filter: null, error: error.message };
  }
}

interface FilterBarProps {
  filtered: Filtered;
  states?: readonly string[]; // that can be chosen; none: the page has chosen
  counts?: Readonly<Record<string, number>>;
  hidden?: readonly string[]; // fields that the page has set
}

export function FilterBar({ filtered, states = facts.states, counts, hidden = [] }: FilterBarProps) {
  const [typed, setTyped] = useState(filtered.text);
  const settled = useSettled(typed);
  useEffect(() => setTyped(filtered.text), [filtered.text]);
  useEffect(() => {
    if (settled === typed && settled !== filtered.text) setParams({ q: settled });
  }, [settled]);
  const own = parseTerms(filtered.text);
  const chosen = valuesOf(own, "state");
  const write = (terms: readonly Term[]) => setParams({ q: formatTerms(terms) });
  const fields = Object.keys(FIELDS).filter((name) => name !== "state" && !hidden.includes(name));
  return (
    <div class="filters">
      {states.length > 0 && (
        <div class="chips" role="group" aria-label={s.filters.states}>
          {states.map((state) => (
            <button
              key={state}
              class={`chip state ${state}`}
              aria-pressed={chosen.includes(state)}
              onClick={() => write(toggled(own, { name: "state", value: state }))}
            >
              <i />
              {s.states[state as keyof typeof s.states]}
              {counts?.[state] !== undefined && <b>{counts[state]?.toLocaleString("en-US")}</b>}
            </button>
          ))}
        </div>
      )}
      <div class="box">
        <Icon name="search" />
        <input
          type="text"
          data-search
          aria-label={s.filters.label}
          aria-invalid={filtered.error !== ""}
          placeholder={s.filters.placeholder}
          value={typed}
          spellcheck={false}
          onInput={(event) => setTyped(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && setParams({ q: typed })}
        />
        <select
          aria-label={s.filters.add}
          value=""
          onChange={(event) => {
            const name = event.currentTarget.value;
            event.currentTarget.value = "";
            setTyped(`${typed ? `${typed} ` : ""}${name}:`);
            document.querySelector<HTMLInputElement>("[data-search]")?.focus();
          }}
        >
          <option value="">{s.filters.add}</option>
          {fields.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </div>
      {filtered.error && (
        <p class="refused" role="alert">
          {filtered.error}
        </p>
      )}
      {own.some((term) => term.name !== "state") && (
        <div class="terms">
          {own
            .filter((term) => term.name !== "state")
            .map((term) => (
              <button key={formatTerm(term)} class="term" title={s.filters.remove} onClick={() => write(own.filter((one) => one !== term))}>
                <span>{term.name}</span> {term.value} <Icon name="cross" />
              </button>
            ))}
          <button class="quiet" onClick={() => setParams({ q: null })}>
            {s.filters.clear}
          </button>
        </div>
      )}
    </div>
  );
}
