/** Who works: what each holds, whether it is still heard of. */

import { get } from "../api/client";
import { useQuery } from "../api/query";
import type { Worker, WorkerDetail } from "../api/types";
import { stringify } from "../model/exact";
import { quoted } from "../model/shell";
import { Card, CopyAs, Elapsed, Empty, Figure, Head, Loaded, Time, useNow, useTitle } from "../parts/basic";
import { Table, type Column } from "../parts/table";
import { encodeName, go, hrefOf, JobLink, Link, QueueLink } from "../shell/router";
import { s } from "../strings";

const POLL_MS = 3_000;
const STALE_MS = 60_000;
const GONE_MS = 300_000;
const QUEUES_SHOWN = 4;

function Health({ worker }: { worker: Worker }) {
  const silent = useNow() - Date.parse(worker.last_heartbeat);
  const word = silent > GONE_MS ? "gone" : silent > STALE_MS ? "stale" : worker.is_waiting ? "waiting" : "working";
  return <span class={`status worker-${word}`}>{s.workers.health[word]}</span>;
}

const COLUMNS: readonly Column<Worker>[] = [
  { key: "id", title: s.workers.worker, cell: (one) => <Link to={`workers/${encodeName(one.id)}`} class="strong">{one.id}</Link> },
  { key: "health", title: s.columns.status, cell: (one) => <Health worker={one} /> },
  { key: "host", title: s.facts.host, rank: 2, cell: (one) => one.hostname },
  {
    key: "jobs",
    title: s.workers.jobs,
    isNumber: true,
    cell: (one) => (
      <span class="share">
        {one.pool_size ? <meter min={0} max={one.pool_size} value={one.active_jobs ?? 0} aria-label={s.workers.busy} /> : null}
        {one.active_jobs ?? 0}
        {one.pool_size ? ` / ${one.pool_size}` : ""}
      </span>
    ),
  },
  {
    key: "queues",
    title: s.nav.queues,
    isWide: true,
    cell: (one) => (
      <>
        {one.queues.slice(0, QUEUES_SHOWN).map((name) => (
          <span key={name} class="tag">
            <QueueLink name={name} />
          </span>
        ))}
        {one.queues.length > QUEUES_SHOWN && <span class="faint">{s.more(one.queues.length - QUEUES_SHOWN)}</span>}
      </>
    ),
  },
  { key: "heard", title: s.workers.heard, cell: (one) => <Time at={one.last_heartbeat} /> },
  { key: "up", title: s.workers.up, rank: 2, cell: (one) => <Elapsed since={one.started_at} /> },
  { key: "version", title: s.workers.version, rank: 3, cell: (one) => one.version ?? "" },
];

export function Workers() {
  useTitle(s.nav.workers);
  const result = useQuery<Worker[]>("workers", () => get("/workers"), { everyMs: POLL_MS, tags: ["workers"] });
  return (
    <>
      <Head title={s.nav.workers} about={result.data && s.workers.count(result.data.length)}>
        <CopyAs call={{ method: "GET", path: "/workers" }} command="workers" />
      </Head>
      <Loaded result={result}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty icon="worker" title={s.workers.empty} hint="POST /api/v1/fetch" />
          ) : (
            <Table label={s.nav.workers} rows={rows} columns={COLUMNS} idOf={(one) => one.id} onOpen={(one) => go(hrefOf(`workers/${encodeName(one.id)}`))} />
          )
        }
      </Loaded>
    </>
  );
}

export function WorkerPage({ name: id }: { name: string }) {
  useTitle(id);
  const path = `/workers/${encodeURIComponent(id)}`;
  const result = useQuery<WorkerDetail>(`worker ${id}`, () => get(path), { everyMs: POLL_MS });
  return (
    <Loaded result={result}>
      {(one) => (
        <>
          <Head title={id} about={<Health worker={one} />}>
            <CopyAs call={{ method: "GET", path }} command={`workers ${quoted(id)}`} />
          </Head>
          <dl class="figures">
            <Figure label={s.workers.jobs} value={one.active_jobs ?? one.jobs.length} more={one.pool_size ? s.workers.of(one.pool_size) : ""} tone="active" />
            <Figure label={s.workers.heard} value={<Time at={one.last_heartbeat} />} />
            <Figure label={s.workers.up} value={<Elapsed since={one.started_at} />} />
            <Figure label={s.facts.host} value={one.hostname || "–"} more={one.version ?? ""} />
          </dl>
          <Card title={s.nav.queues}>
            {one.queues.map((name) => (
              <span key={name} class="tag">
                <QueueLink name={name} />
              </span>
            ))}
          </Card>
          <Card title={s.workers.jobs}>
            {one.jobs.length === 0 ? (
              <Empty icon="worker" title={s.workers.idle} />
            ) : (
              <ul class="plain-list">
                {one.jobs.map((job) => (
                  <li key={job.id}>
                    <JobLink id={job.id} isLong /> <QueueLink name={job.queue} />{" "}
                    {job.started_at && (
                      <span class="faint">
                        <Elapsed since={job.started_at} /> · {s.facts.lease} <Time at={job.lease_expires_at} />
                      </span>
                    )}
                    {job.progress != null && <code>{stringify(job.progress, 0)}</code>}
                  </li>
                ))}
              </ul>
            )}
          </Card>
        </>
      )}
    </Loaded>
  );
}
