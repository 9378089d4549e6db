/** All queues, in one table that takes a thousand of them. */

import { useMemo, useState } from "preact/hooks";
import { get } from "../api/client";
import { useEvents } from "../api/live";
import { touch, useQuery } from "../api/query";
import type { Queue } from "../api/types";
import { perSecond, span, whole } from "../model/format";
import { CopyAs, Empty, Head, Loaded, useTitle } from "../parts/basic";
import { Icon } from "../parts/icons";
import { PauseButton, QueueBars, Status } from "../parts/queuebits";
import { sorted, Table, type Column } from "../parts/table";
import { useKeys } from "../shell/keys";
import { encodeName, go, hrefOf, place, QueueLink, setParams } from "../shell/router";
import { s } from "../strings";

const POLL_MS = 3_000;
const LATE_MS = 60_000;
const STUCK_MS = 300_000;
const TOLD = ["queue_paused", "queue_resumed", "queue_draining", "queue_cleared", "queue_deleted", "queue_changed"] as const;

const count = (state: "pending" | "active" | "retrying" | "scheduled" | "held" | "dead" | "completed", rank?: 2 | 3): Column<Queue> => ({
  key: state,
  title: s.states[state],
  isNumber: true,
  ...(rank ? { rank } : {}),
  sort: (queue) => queue[state],
  cell: (queue) => <span class={queue[state] > 0 ? `count-of ${state}` : "faint"}>{whole(queue[state])}</span>,
});

function Age({ ms }: { ms: number | null | undefined }) {
  if (ms === null || ms === undefined) return <span class="faint">–</span>;
  return <span class={ms >= STUCK_MS ? "bad" : ms >= LATE_MS ? "warn" : ""}>{span(ms)}</span>;
}

const COLUMNS: readonly Column<Queue>[] = [
  { key: "name", title: s.columns.queue, sort: (queue) => queue.name, cell: (queue) => <QueueLink name={queue.name} />, isWide: true },
  { key: "status", title: s.columns.status, sort: (queue) => queue.status ?? "", cell: (queue) => <Status status={queue.status} /> },
  { key: "jobs", title: s.queues.jobs, rank: 2, cell: (queue) => <QueueBars queue={queue} /> },
  count("pending"),
  count("active"),
  count("retrying", 3),
  count("scheduled", 3),
  count("held", 3),
  count("dead"),
  count("completed", 3),
  { key: "age", title: s.queues.oldest, isNumber: true, sort: (queue) => queue.oldest_pending_age_ms ?? -1, cell: (queue) => <Age ms={queue.oldest_pending_age_ms} /> },
  { key: "rate", title: s.queues.rate, isNumber: true, rank: 2, sort: (queue) => queue.completed_per_s ?? 0, cell: (queue) => perSecond(queue.completed_per_s ?? 0) },
  { key: "act", title: s.columns.actions, cell: (queue) => <PauseButton name={queue.name} isPaused={queue.paused ?? false} /> },
];

export function Queues() {
  useTitle(s.nav.queues);
  const { params } = place.use();
  const wanted = params.get("q") ?? "";
  const key = params.get("sort") ?? "name";
  const isDown = params.get("order") === "desc";
  const [cursor, setCursor] = useState(-1);
  const result = useQuery<Queue[]>("queues", () => get("/queues"), { everyMs: POLL_MS, tags: ["queues"] });
  useEvents({ types: TOLD }, () => touch("queues"));
  const rows = useMemo(() => {
    const fitting = (result.data ?? []).filter((queue) => queue.name.toLowerCase().includes(wanted.toLowerCase()));
    return sorted(fitting, COLUMNS, key, isDown);
  }, [result.data, wanted, key, isDown]);
  useKeys({
    j: () => setCursor(Math.min(rows.length - 1, cursor + 1)),
    k: () => setCursor(Math.max(0, cursor - 1)),
    ...(rows[cursor] ? { Enter: () => go(hrefOf(`queues/${encodeName(rows[cursor]!.name)}`)) } : {}),
  });
  return (
    <>
      <Head title={s.nav.queues} about={result.data ? s.queues.count(whole(result.data.length)) : undefined}>
        <CopyAs call={{ method: "GET", path: "/queues" }} command="queues" />
      </Head>
      <div class="filters">
        <div class="box">
          <Icon name="search" />
          <input
            type="text"
            data-search
            aria-label={s.queues.find}
            placeholder={s.queues.find}
            value={wanted}
            onInput={(event) => setParams({ q: event.currentTarget.value })}
          />
        </div>
      </div>
      <Loaded result={result}>
        {() =>
          rows.length === 0 ? (
            <Empty icon="queues" title={wanted ? s.list.noMatch : s.queues.empty} {...(wanted ? {} : { hint: s.queues.emptyHint })} />
          ) : (
            <Table
              label={s.nav.queues}
              rows={rows}
              columns={COLUMNS}
              idOf={(queue) => queue.name}
              sortedBy={{ key, isDown }}
              onSort={(next) => setParams({ sort: next, order: next === key && !isDown ? "desc" : null })}
              onOpen={(queue) => go(hrefOf(`queues/${encodeName(queue.name)}`))}
              cursor={cursor}
            />
          )
        }
      </Loaded>
    </>
  );
}
