/** One box to go anywhere: pages, queues, a job by its id, a search. */

import { useState } from "preact/hooks";
import { get } from "../api/client";
import { useQuery } from "../api/query";
import { may } from "../api/session";
import type { Queue } from "../api/types";
import { Dialog, hide, show } from "../parts/dialog";
import { Icon, type IconName } from "../parts/icons";
import { s } from "../strings";
import { EnqueueDialog } from "./enqueue";
import { PAGES } from "./pages";
import { encodeName, go, hrefOf } from "./router";
import { toggleTheme } from "./theme";

interface Choice {
  icon: IconName;
  title: string;
  hint: string;
  act: () => void;
}

const SHOWN_MAX = 12;
const JOB_ID = /^s\d\d_job_[0-9a-z_]+$/;

function choices(text: string, queues: readonly Queue[]): Choice[] {
  const wanted = text.trim().toLowerCase();
  const open = (href: string) => () => (hide(), go(href));
  const found: Choice[] = [];
  if (JOB_ID.test(wanted)) {
    found.push({ icon: "right", title: wanted, hint: s.palette.job, act: open(hrefOf(`jobs/${wanted}`)) });
  }
  for (const page of PAGES) {
    if (may(page.needs) && page.title.toLowerCase().includes(wanted)) {
      found.push({ icon: page.icon, title: page.title, hint: s.palette.page, act: open(hrefOf(page.path)) });
    }
  }
  for (const queue of queues) {
    if (queue.name.toLowerCase().includes(wanted)) {
      found.push({ icon: "queues", title: queue.name, hint: s.palette.queue, act: open(hrefOf(`queues/${encodeName(queue.name)}`)) });
    }
    if (found.length > 3 * SHOWN_MAX) break;
  }
  const actions: Choice[] = [
    ...(may("enqueue") ? [{ icon: "plus" as const, title: s.enqueue.open, hint: s.palette.action, act: () => show(<EnqueueDialog />) }] : []),
    { icon: "sun", title: s.theme, hint: s.palette.action, act: () => (hide(), toggleTheme()) },
  ];
  found.push(...actions.filter((action) => action.title.toLowerCase().includes(wanted)));
  if (wanted) {
    found.push({ icon: "search", title: text.trim(), hint: s.palette.search, act: open(hrefOf("jobs", { q: text.trim() })) });
  }
  return found.slice(0, SHOWN_MAX);
}

export function Palette() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const { data } = useQuery<Queue[]>("queues", () => get("/queues"), { tags: ["queues"] });
  const found = choices(text, data ?? []);
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setAt((at + step + found.length) % Math.max(1, found.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      found[at]?.act();
    }
  };
  return (
    <Dialog title={s.palette.title}>
      <input
        type="text"
        class="palette"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found[at] ? `choice-${at}` : ""}
        aria-label={s.palette.title}
        placeholder={s.palette.placeholder}
        value={text}
        autofocus
        onInput={(event) => (setText(event.currentTarget.value), setAt(0))}
        onKeyDown={press}
      />
      <ul id="palette-list" role="listbox" aria-label={s.palette.title} class="choices">
        {found.map((choice, number) => (
          <li key={number} id={`choice-${number}`} role="option" aria-selected={number === at} onClick={choice.act}>
            <Icon name={choice.icon} />
            <span>{choice.title}</span>
            <small>{choice.hint}</small>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
