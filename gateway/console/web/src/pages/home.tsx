/** Home: is anything stuck or failing? The answer first, then the figures behind it. */

import { useMemo } from "preact/hooks";
import { get } from "../api/client";
import { useEvents } from "../api/live";
import { touch, useQuery } from "../api/query";
import { may } from "../api/session";
import type { Cluster, ErrorGroupsAnswer, Point, Queue, Worker } from "../api/types";
import { perSecond, short, span, whole } from "../model/format";
import { findings, type Finding } from "../model/verdicts";
import { Card, CopyAs, Empty, Figure, Head, Loaded, Time, useTitle } from "../parts/basic";
import { Chart } from "../parts/chart";
import { Icon } from "../parts/icons";
import { encodeName, JobLink, Link, QueueLink } from "../shell/router";
import { s } from "../strings";
import { QueueBars } from "../parts/queuebits";

const POLL_MS = 2_000;
const SLOW_POLL_MS = 10_000;
const BUSIEST = 8;
const HOUR_MS = 3_600_000;
const TOLD = ["dead", "held", "approved", "rejected", "queue_paused", "queue_resumed", "queue_deleted", "failed"] as const;

export function Home() {
  useTitle(s.nav.home);
  const queues = useQuery<Queue[]>("queues", () => get("/queues"), { everyMs: POLL_MS, tags: ["queues"] });
  const workers = useQuery<Worker[]>(may("workers") ? "workers" : null, () => get("/workers"), { everyMs: SLOW_POLL_MS, tags: ["workers"] });
  const cluster = useQuery<Cluster>(may("cluster_status") ? "cluster" : null, () => get("/cluster/status"), { everyMs: SLOW_POLL_MS });
  const series = useQuery<Point[]>(may("throughput") ? "throughput 60" : null, () => get("/metrics/throughput", { minutes: 60 }), {
    everyMs: SLOW_POLL_MS,
  });
  const errors = useQuery<ErrorGroupsAnswer>(
    may("error_groups") ? "errors hour" : null,
    () => get("/errors/groups", { since: new Date(Date.now() - HOUR_MS).toISOString(), limit: 20 }),
    { everyMs: SLOW_POLL_MS, tags: ["errors"] },
  );
  useEvents({ types: TOLD }, (event) => touch("queues", ...(event.type === "failed" ? ["errors"] : [])));
  const found = useMemo(
    () =>
      findings({
        queues: queues.data ?? [],
        workers: workers.data ?? null,
        errors: errors.data?.groups ?? [],
        cluster: cluster.data ?? null,
      }),
    [queues.data, workers.data, errors.data, cluster.data],
  );
  return (
    <>
      <Head title={s.home.title}>
        <CopyAs call={{ method: "GET", path: "/queues" }} command="status" />
      </Head>
      <Loaded result={queues}>
        {(rows) => (
          <>
            <Verdict found={found} />
            <Totals queues={rows} workers={workers.data} />
            <div class="grid two">
              {series.data && <Throughput points={series.data} />}
              <Busiest queues={rows} />
              {errors.data && <Failures groups={errors.data.groups} />}
              {cluster.data && <Nodes cluster={cluster.data} />}
            </div>
          </>
        )}
      </Loaded>
    </>
  );
}

function Verdict({ found }: { found: readonly Finding[] }) {
  const worst = found[0]?.severity ?? "calm";
  return (
    <section class={`verdict ${worst}`} aria-label={s.home.verdict}>
      <p class="word">
        <Icon name={worst === "calm" || worst === "note" ? "check" : "alert"} />
        {s.home.words[worst]}
      </p>
      {found.length > 0 && (
        <ul>
          {found.slice(0, 8).map((one, number) => (
            <li key={number} class={one.severity}>
              <FindingLine finding={one} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function FindingLine({ finding }: { finding: Finding }) {
  const t = s.home.findings;
  switch (finding.kind) {
    case "no_worker":
      return (
        <>
          <QueueLink name={finding.queue} /> {t.noWorker(finding.pending, span(finding.waitedMs))}
        </>
      );
    case "slow":
      return (
        <>
          <QueueLink name={finding.queue} /> {t.slow(finding.pending, span(finding.waitedMs))}
        </>
      );
    case "paused":
      return (
        <>
          <QueueLink name={finding.queue} /> {t.paused(finding.pending)}
        </>
      );
    case "failing":
      return (
        <>
          <QueueLink name={finding.queue} /> {t.failing(whole(finding.count))} <JobLink id={finding.jobId} />:{" "}
          <q>{finding.message.slice(0, 120)}</q>
        </>
      );
    case "dead":
      return (
        <>
          <Link to="dead">{t.dead(finding.count)}</Link> {t.inQueues(finding.queues)}
        </>
      );
    case "held":
      return <Link to="held">{t.held(finding.count)}</Link>;
    case "cluster":
      return (
        <>
          <Link to="cluster">{t.cluster(finding.status)}</Link> {finding.reasons.join("; ")}
        </>
      );
  }
}

function Totals({ queues, workers }: { queues: readonly Queue[]; workers: readonly Worker[] | undefined }) {
  const sum = (pick: (queue: Queue) => number | undefined) => queues.reduce((total, queue) => total + (pick(queue) ?? 0), 0);
  const oldest = Math.max(0, ...queues.map((queue) => queue.oldest_pending_age_ms ?? 0));
  return (
    <dl class="figures">
      <Figure label={s.states.pending} value={short(sum((q) => q.pending))} more={oldest > 0 ? s.home.oldest(span(oldest)) : s.home.noneWaits} tone="pending" />
      <Figure label={s.states.active} value={short(sum((q) => q.active))} more={workers ? s.home.workers(workers.length) : ""} tone="active" />
      <Figure label={s.home.finished} value={perSecond(sum((q) => q.completed_per_s))} more={s.home.enqueued(perSecond(sum((q) => q.enqueued_per_s)))} tone="completed" />
      <Figure label={s.home.failed} value={perSecond(sum((q) => q.failed_per_s))} more={s.home.retrying(short(sum((q) => q.retrying)))} tone="retrying" />
      <Figure label={s.states.dead} value={short(sum((q) => q.dead))} more={s.home.deadTotal(short(sum((q) => q.dead_total)))} tone="dead" />
      <Figure label={s.nav.queues} value={whole(queues.length)} more={s.home.pausedQueues(queues.filter((q) => q.paused).length)} />
    </dl>
  );
}

export function Throughput({ points }: { points: readonly Point[] }) {
  const data = useMemo(
    () => ({
      times: points.map((point) => Date.parse(point.minute) / 1000),
      enqueued: points.map((point) => point.enqueued),
      completed: points.map((point) => point.completed),
      failed: points.map((point) => point.failed),
    }),
    [points],
  );
  return (
    <Card title={s.home.throughput} side={<span class="faint">{s.home.perMinute}</span>} class="span">
      <Chart
        label={s.home.throughput}
        times={data.times}
        lines={[
          { label: s.home.lines.enqueued, color: "--pending", values: data.enqueued },
          { label: s.home.lines.completed, color: "--completed", values: data.completed, isFilled: true },
          { label: s.home.lines.failed, color: "--dead", values: data.failed },
        ]}
      />
    </Card>
  );
}

function Busiest({ queues }: { queues: readonly Queue[] }) {
  const load = (queue: Queue) => queue.pending + queue.active + 60 * ((queue.enqueued_per_s ?? 0) + (queue.completed_per_s ?? 0));
  const rows = [...queues].sort((one, other) => load(other) - load(one)).slice(0, BUSIEST);
  return (
    <Card title={s.home.busiest} side={<Link to="queues">{s.home.allQueues(queues.length)}</Link>}>
      {rows.length === 0 ? (
        <Empty icon="queues" title={s.queues.empty} hint={s.queues.emptyHint} />
      ) : (
        <ul class="bars">
          {rows.map((queue) => (
            <li key={queue.name}>
              <Link to={`queues/${encodeName(queue.name)}`} class="strong">
                {queue.name}
              </Link>
              <span class="faint">
                {queue.paused ? s.queues.statuses[queue.status as "paused"] ?? queue.status : perSecond(queue.completed_per_s ?? 0)}
              </span>
              <QueueBars queue={queue} />
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Failures({ groups }: { groups: ErrorGroupsAnswer["groups"] }) {
  return (
    <Card title={s.home.failures} side={<Link to="dead">{s.nav.dead}</Link>}>
      {groups.length === 0 ? (
        <Empty icon="check" title={s.home.noFailures} />
      ) : (
        <ul class="failures">
          {groups.slice(0, 6).map((group) => (
            <li key={group.fingerprint + group.queue}>
              <b>{short(group.count)}×</b>
              <span class="message" title={group.sample_error}>
                {group.message}
              </span>
              <span class="faint">
                <QueueLink name={group.queue} /> · <Time at={group.last_at} /> · <JobLink id={group.sample_job_id} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Nodes({ cluster }: { cluster: Cluster }) {
  const nodes = cluster.nodes ?? [];
  const led = (id: string) => cluster.groups.filter((group) => group.leader_id === id).length;
  return (
    <Card title={s.home.nodes} side={<Link to="cluster">{cluster.status}</Link>}>
      <ul class="nodes">
        {(nodes.length > 0 ? nodes : [{ node_id: cluster.node_id, address: "", is_reachable: true }]).map((node) => (
          <li key={node.node_id}>
            <i class={node.is_reachable ? "dot good" : "dot bad"} />
            <b>{node.node_id}</b>
            <span class="faint">
              {node.is_reachable ? s.home.leads(led(node.node_id), cluster.shards) : s.home.unreachable}
            </span>
          </li>
        ))}
      </ul>
      {cluster.mirror && <p class="faint">{s.home.behind(Math.round(cluster.mirror.lag_ms))}</p>}
    </Card>
  );
}
