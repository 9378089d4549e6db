/** Search in all queues, in the language of the API and the command line; views that are worth keeping are kept. */

import { useState } from "preact/hooks";
import { useEvents } from "../api/live";
import { touch } from "../api/query";
import { Head, useTitle } from "../parts/basic";
import { FormDialog, show } from "../parts/dialog";
import { FilterBar, useFilter } from "../parts/filterbar";
import { Icon } from "../parts/icons";
import { JobList } from "../parts/joblist";
import { setParams } from "../shell/router";
import { recall, remember } from "../shell/theme";
import { s } from "../strings";
import facts from "../generated/facts";

interface View {
  name: string;
  q: string;
}

const KEY = "corvo.views";
const VIEWS_MAX = 50;

export function parseViews(text: string | null): View[] {
  try {
    const value: unknown = JSON.parse(text ?? "[]");
    if (!Array.isArray(value)) return [];
    return value
      .filter((one): one is View => typeof one === "object" && one !== null && typeof one.name === "string" && typeof one.q === "string")
      .slice(0, VIEWS_MAX);
  } catch {
    return [];
  }
}

export function Search() {
  useTitle(s.nav.search);
  const [views, setViews] = useState(() => parseViews(recall(KEY)));
  const filtered = useFilter([]);
  useEvents({ types: ["enqueued", "completed", "dead", "cancelled", "deleted"] }, () => touch("jobs"));
  const keep = (next: View[]) => {
    setViews(next);
    remember(KEY, JSON.stringify(next));
  };
  return (
    <>
      <Head title={s.nav.search} about={s.search.about}>
        {filtered.text && (
          <button onClick={() => show(<SaveDialog onSave={(name) => keep([...views.filter((view) => view.name !== name), { name, q: filtered.text }].slice(-VIEWS_MAX))} />)}>
            <Icon name="plus" /> {s.search.save}
          </button>
        )}
      </Head>
      {views.length > 0 && (
        <div class="views" role="group" aria-label={s.search.views}>
          {views.map((view) => (
            <span key={view.name} class={view.q === filtered.text ? "view on" : "view"}>
              <button class="plain" onClick={() => setParams({ q: view.q })}>
                {view.name}
              </button>
              <button class="plain" aria-label={s.search.forget(view.name)} onClick={() => keep(views.filter((one) => one !== view))}>
                <Icon name="cross" />
              </button>
            </span>
          ))}
        </div>
      )}
      <FilterBar filtered={filtered} />
      <JobList
        label={s.nav.search}
        filtered={filtered}
        columns={["id", "queue", "state", "attempt", "payload", "error", "created"]}
        states={facts.states}
        tags={["jobs"]}
        empty={{ icon: "search", title: s.search.empty, hint: "corvo enqueue mail '{\"to\": \"ada@example.org\"}'" }}
      />
    </>
  );
}

const SaveDialog = ({ onSave }: { onSave: (name: string) => void }) => (
  <FormDialog
    title={s.search.save}
    submit={s.save}
    onSubmit={(form) => {
      onSave(String(form.get("name")).trim());
      return Promise.resolve(s.search.saved);
    }}
  >
    <label>
      {s.search.name}
      <input name="name" required maxLength={60} autocomplete="off" autofocus />
    </label>
  </FormDialog>
);
