/** One job: where it is in its life and why, what it carries, and all that happened to it. */

import { useState } from "preact/hooks";
import { get, jobPath } from "../api/client";
import { useEvents } from "../api/live";
import { touch, useQuery } from "../api/query";
import { may } from "../api/session";
import type { Event, EventsPage, Job, Queue, Why } from "../api/types";
import { rounded, stringify } from "../model/exact";
import { span, whole } from "../model/format";
import { storyOf, wayOf, type Told } from "../model/lifecycle";
import { Card, CopyAs, CopyButton, Elapsed, Empty, Head, Loaded, State, Time, useTitle } from "../parts/basic";
import { JobActions } from "../parts/jobactions";
import { Json } from "../parts/json";
import { Life } from "../parts/life";
import { JobLink, Link, QueueLink } from "../shell/router";
import { s } from "../strings";

const POLL_MS = 5_000;
const EVENTS_MAX = 500;
const PAGES_MAX = 5; // a page looks through 10,000 events of a shard: older ones are not worth the shard's time

/** The events of one job that are kept, unless there are too many to look through. */
async function keptEvents(id: string): Promise<Event[]> {
  const found: Event[] = [];
  let after = "";
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { events, next, has_more } = await get<EventsPage>("/cluster/events", { job_ids: id, limit: EVENTS_MAX, after_seq: after });
    found.push(...events.map((event) => ({ ...event, at_ns: rounded(event.at_ns) })));
    if (!has_more) break;
    after = next;
  }
  return found;
}

/** Without those that came both ways. */
function joined(kept: readonly Event[], seen: readonly Event[]): Event[] {
  const known = new Set(kept.map((event) => event.seq));
  return [...kept.filter((event) => event.type !== "progress"), ...seen.filter((event) => !known.has(event.seq))];
}

export function JobPage({ name: id }: { name: string }) {
  useTitle(id);
  const job = useQuery<Job>(`job ${id}`, () => get(jobPath(id)), { everyMs: POLL_MS, tags: ["job"] });
  const kept = useQuery<Event[]>(may("cluster_events") ? `events ${id}` : null, () => keptEvents(id));
  const [seen, setSeen] = useState<readonly Event[]>([]);
  const why = useQuery<Why>(may("why") ? `why ${id}` : null, () => get(jobPath(id, "/why")), { everyMs: POLL_MS, tags: ["job"] });
  useEvents({ jobIds: [id] }, (event) => {
    if (event.type !== "progress") setSeen((now) => [...now, event].slice(-EVENTS_MAX));
    touch("job");
  });
  const events = joined(kept.data ?? [], seen);
  const isWhole = events[0]?.type === "enqueued";
  return (
    <Loaded result={job}>
      {(data) => (
        <>
          <Head
            title={
              <>
                <span class="mono">{id}</span> <CopyButton text={id} label={s.job.copyId} />
              </>
            }
            about={
              <>
                <State name={data.state} /> <QueueLink name={data.queue} /> · <Time at={data.created_at} />
              </>
            }
          >
            <CopyAs call={{ method: "GET", path: jobPath(id) }} command={`inspect ${id}`} />
            <JobActions job={data} />
          </Head>
          <div class="grid job">
            <Card title={s.job.life} class="span">
              <Life way={wayOf(isWhole ? events : storyOf(data), data.state, Date.parse(data.created_at) * 1e6)} state={data.state} />
              {why.data && <WhyLine why={why.data} />}
              {data.progress !== undefined && data.progress !== null && <Progress value={data.progress} />}
            </Card>
            <div class="stack">
              <Json title={s.job.payload} value={data.payload} />
              {data.result !== undefined && <Json title={s.job.result} value={data.result} />}
              {data.checkpoint !== undefined && <Json title={s.job.checkpoint} value={data.checkpoint} />}
              <Attempts job={data} />
            </div>
            <div class="stack">
              <Facts job={data} />
              <Links job={data} />
              <Timeline events={isWhole ? events : storyOf(data)} isWhole={isWhole} />
            </div>
          </div>
        </>
      )}
    </Loaded>
  );
}

function WhyLine({ why }: { why: Why }) {
  return (
    <div class="why" role="status">
      <b>{s.job.why[why.reason as keyof typeof s.job.why] ?? why.reason}</b>
      <span>{why.message}</span>
      {why.until && (
        <span>
          {s.job.until} <Time at={why.until} />
        </span>
      )}
      {why.jobs_ahead && <span>{s.job.ahead(whole(why.jobs_ahead.count), why.jobs_ahead.is_exact)}{eta(why)}</span>}
      {(why.waits_for ?? []).map((id) => (
        <JobLink key={id} id={id} />
      ))}
      {(why.also ?? []).length > 0 && <span class="faint">{s.job.also((why.also ?? []).join(", "))}</span>}
    </div>
  );
}

/** How long the jobs ahead will take, at the rate of the last minutes. */
function eta(why: Why) {
  return why.jobs_ahead ? <Eta queue={why.queue} ahead={why.jobs_ahead.count} /> : null;
}

function Eta({ queue, ahead }: { queue: string; ahead: number }) {
  const { data } = useQuery<Queue[]>(may("queues") ? "queues" : null, () => get("/queues"), { tags: ["queues"] });
  const rate = data?.find((one) => one.name === queue)?.completed_per_s ?? 0;
  return rate > 0 ? <> · {s.job.eta(span((1000 * ahead) / rate))}</> : null;
}

function Progress({ value }: { value: unknown }) {
  const fields = (typeof value === "object" ? value : {}) as { current?: number; total?: number; percent?: number; message?: string };
  const done = fields.percent ?? (fields.total ? (100 * (fields.current ?? 0)) / fields.total : typeof value === "number" ? value : null);
  return (
    <div class="progress">
      {done !== null && <progress max={100} value={done} aria-label={s.job.progress} />}
      <span>{done === null ? stringify(value, 0) : `${Math.round(done)} %`}</span>
      {fields.message && <span class="faint">{fields.message}</span>}
    </div>
  );
}

function Facts({ job }: { job: Job }) {
  const rows: [string, preact.ComponentChild][] = [
    [s.facts.attempt, `${job.attempt} / ${job.max_retries}`],
    [s.facts.priority, s.priorities[job.priority] ?? job.priority],
    [s.facts.created, <Time at={job.created_at} isRelative={false} />],
  ];
  const add = (label: string, value: preact.ComponentChild | null | undefined) => {
    if (value !== undefined && value !== null && value !== "") rows.push([label, value]);
  };
  add(s.facts.scheduled, job.scheduled_at && <Time at={job.scheduled_at} />);
  add(s.facts.started, job.started_at && <Time at={job.started_at} isRelative={false} />);
  add(s.facts.worker, job.worker_id && <Link to={`workers/${encodeURIComponent(job.worker_id)}`}>{job.worker_id}</Link>);
  add(s.facts.host, job.hostname);
  add(s.facts.lease, job.lease_expires_at && <Time at={job.lease_expires_at} />);
  add(s.facts.completed, job.completed_at && <Time at={job.completed_at} isRelative={false} />);
  add(s.facts.failed, job.failed_at && <Time at={job.failed_at} isRelative={false} />);
  add(s.facts.held, job.hold_reason);
  add(s.facts.expires, job.expire_at && <Time at={job.expire_at} />);
  rows.push([s.facts.backoff, s.facts.backoffText(job.retry_backoff, span(job.retry_base_delay_ms), span(job.retry_max_delay_ms))]);
  add(s.facts.unique, job.unique_key);
  add(s.facts.idempotency, job.idempotency_key);
  for (const [key, value] of Object.entries((job.tags ?? {}) as Record<string, unknown>)) {
    rows.push([s.facts.tag(key), typeof value === "string" ? value : stringify(value, 0)]);
  }
  return (
    <Card title={s.job.facts}>
      <dl class="facts">
        {rows.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}

function Links({ job }: { job: Job }) {
  const chain = job.chain_config;
  const hasAny = job.parent_id || job.batch_id || job.chain_id || job.schedule_id || (job.waiting_for ?? []).length > 0;
  if (!hasAny) return null;
  return (
    <Card title={s.job.links}>
      <ul class="plain-list">
        {job.batch_id && (
          <li>
            {s.job.batch} <Link to={`batches/${encodeURIComponent(job.batch_id)}`}>{job.batch_id}</Link>
          </li>
        )}
        {job.parent_id && (
          <li>
            {s.job.parent} <JobLink id={job.parent_id} />
          </li>
        )}
        {job.schedule_id && (
          <li>
            {s.job.schedule} <Link to={`schedules/${encodeURIComponent(job.schedule_id)}`}>{job.schedule_id}</Link>
          </li>
        )}
        {(job.waiting_for ?? []).map((id) => (
          <li key={id}>
            {s.job.waitsFor} <JobLink id={id} />
          </li>
        ))}
        {job.chain_id && (
          <li>
            <Link to="jobs" params={{ q: `chain_id:${job.chain_id} order:asc` }}>
              {s.job.chain}
            </Link>
          </li>
        )}
      </ul>
      {chain && (
        <ol class="chain">
          {chain.steps.map((step, at) => (
            <li key={at} class={at === job.chain_step ? "now" : at < (job.chain_step ?? 0) ? "done" : ""}>
              <QueueLink name={step.queue} />
            </li>
          ))}
        </ol>
      )}
    </Card>
  );
}

function Attempts({ job }: { job: Job }) {
  const attempts = [...(job.attempts ?? [])].reverse();
  const errors = new Map((job.errors ?? []).map((one) => [one.attempt, one]));
  return (
    <Card title={s.job.attempts} side={<span class="faint">{job.attempts?.length ?? 0}</span>}>
      {attempts.length === 0 ? (
        <Empty icon="worker" title={s.job.noAttempts} />
      ) : (
        <ol class="attempts">
          {attempts.map((one) => {
            const error = one.error ?? errors.get(one.attempt)?.error;
            const trace = one.backtrace ?? errors.get(one.attempt)?.backtrace;
            return (
              <li key={one.attempt} class={one.outcome}>
                <b>#{one.attempt}</b> <span class={`outcome ${one.outcome}`}>{one.outcome || s.job.running}</span>
                <span class="faint">
                  {one.worker_id} · <Time at={one.started_at} />
                  {one.started_at && one.ended_at && ` · ${span(Date.parse(one.ended_at) - Date.parse(one.started_at))}`}
                  {one.started_at && !one.ended_at && (
                    <>
                      {" "}
                      · <Elapsed since={one.started_at} />
                    </>
                  )}
                </span>
                {error && <p class="error-text">{error}</p>}
                {trace && (
                  <details>
                    <summary>{s.job.backtrace}</summary>
                    <pre tabIndex={0}>{trace}</pre>
                    <CopyButton text={trace} label={s.job.copyTrace} />
                  </details>
                )}
              </li>
            );
          })}
        </ol>
      )}
    </Card>
  );
}

function Timeline({ events, isWhole }: { events: readonly Told[]; isWhole: boolean }) {
  return (
    <Card title={s.job.timeline}>
      <ol class="timeline">
        {events.map((event, at) => {
          const before = events[at - 1];
          return (
            <li key={at} class={event.type}>
              <b>{event.type.replaceAll("_", " ")}</b> <Time at={event.at_ns / 1e6} />
              {before && <span class="faint">+{span((event.at_ns - before.at_ns) / 1e6)}</span>}
            </li>
          );
        })}
      </ol>
      {!isWhole && <p class="faint">{s.job.missed}</p>}
    </Card>
  );
}
