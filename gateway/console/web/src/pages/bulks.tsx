/** Operations on many jobs, and the progress of one. */

import { get, post } from "../api/client";
import { refresh, useQuery } from "../api/query";
import { may } from "../api/session";
import type { Bulk } from "../api/types";
import { perSecond, span, whole } from "../model/format";
import { Card, CopyAs, Empty, Figure, Head, Loaded, Time, useTitle } from "../parts/basic";
import { Json } from "../parts/json";
import { Table, type Column } from "../parts/table";
import { attempt } from "../parts/toast";
import { go, hrefOf, JobLink, Link } from "../shell/router";
import { s } from "../strings";

const POLL_MS = 3_000;
const RUNNING_MS = 500;
const isOver = (bulk: Bulk): boolean => bulk.finished_at != null;
const titleOf = (bulk: Bulk): string => s.actions[bulk.action as keyof typeof s.actions & "retry"]?.title ?? bulk.action;

const COLUMNS: readonly Column<Bulk>[] = [
  { key: "id", title: s.bulks.operation, cell: (one) => <Link to={`bulk/${encodeURIComponent(one.id)}`} class="strong">{titleOf(one)}</Link> },
  { key: "status", title: s.columns.status, cell: (one) => <span class={`status ${one.status}`}>{one.status}</span> },
  { key: "progress", title: s.batches.progress, cell: (one) => <progress max={Math.max(1, one.total)} value={isOver(one) ? Math.max(1, one.total) : one.processed} aria-label={s.batches.progress} /> },
  { key: "affected", title: s.bulks.affected, isNumber: true, cell: (one) => whole(one.affected) },
  { key: "errors", title: s.bulks.refused, isNumber: true, cell: (one) => <span class={one.errors ? "count-of dead" : "faint"}>{whole(one.errors)}</span> },
  { key: "created", title: s.columns.created, rank: 2, cell: (one) => <Time at={one.created_at} /> },
];

export function Bulks() {
  useTitle(s.nav.bulk);
  const result = useQuery<Bulk[]>("bulks", () => get("/bulk"), { everyMs: POLL_MS });
  return (
    <>
      <Head title={s.nav.bulk} about={s.bulks.about}>
        <CopyAs call={{ method: "GET", path: "/bulk" }} command="bulk list" />
      </Head>
      <Loaded result={result}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty icon="bulk" title={s.bulks.empty} hint="corvo bulk retry --state dead --dry-run" />
          ) : (
            <Table label={s.nav.bulk} rows={rows} columns={COLUMNS} idOf={(one) => one.id} onOpen={(one) => go(hrefOf(`bulk/${one.id}`))} />
          )
        }
      </Loaded>
    </>
  );
}

export function BulkPage({ name: id }: { name: string }) {
  useTitle(s.nav.bulk);
  const path = `/bulk/${encodeURIComponent(id)}`;
  const result = useQuery<Bulk>(`bulk ${id}`, () => get(path), { everyMs: RUNNING_MS });
  const cancel = async () => {
    await post(`${path}/cancel`);
    refresh();
  };
  return (
    <Loaded result={result}>
      {(one) => (
        <>
          <Head title={titleOf(one)} about={<span class={`status ${one.status}`}>{one.status}</span>}>
            <CopyAs call={{ method: "GET", path }} command={`bulk status ${id}`} />
            {!isOver(one) && may("cancel_bulk") && (
              <button class="danger" disabled={one.cancel_requested === true} onClick={() => void attempt(cancel, s.bulks.cancelling)}>
                {s.bulks.cancel}
              </button>
            )}
          </Head>
          <progress
            class="long"
            max={Math.max(1, one.total)}
            value={isOver(one) ? Math.max(1, one.processed) : one.processed}
            aria-label={s.batches.progress}
          />
          <dl class="figures">
            <Figure label={s.bulks.processed} value={whole(one.processed)} more={s.bulks.of(whole(one.total), one.total_is_exact)} />
            <Figure label={s.bulks.affected} value={whole(one.affected)} tone="completed" />
            <Figure label={s.bulks.refused} value={whole(one.errors)} tone={one.errors > 0 ? "dead" : ""} />
            <Figure label={s.queues.rate} value={one.rate != null ? perSecond(one.rate) : "–"} more={one.eta_s != null && !isOver(one) ? s.bulks.left(span(one.eta_s * 1000)) : ""} />
          </dl>
          {one.error && <p class="refused">{one.error}</p>}
          {(one.error_samples ?? []).length > 0 && (
            <Card title={s.bulks.refusals}>
              <ul class="plain-list">
                {(one.error_samples ?? []).map((failure) => (
                  <li key={failure.job_id}>
                    <JobLink id={failure.job_id} /> {failure.error}
                  </li>
                ))}
              </ul>
            </Card>
          )}
          {one.filter !== undefined && one.filter !== null && <Json title={s.bulks.filter} value={one.filter} />}
        </>
      )}
    </Loaded>
  );
}
