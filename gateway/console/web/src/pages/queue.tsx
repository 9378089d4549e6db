/** One queue: its figures and limits, what can be done to it, and its jobs. */

import { get, post, queuePath, ask } from "../api/client";
import { useEvents } from "../api/live";
import { refresh, touch, useQuery } from "../api/query";
import { may } from "../api/session";
import type { Point, QueueDetail } from "../api/types";
import { short, span, whole } from "../model/format";
import { quoted } from "../model/shell";
import { CopyAs, Figure, Head, Loaded, useTitle } from "../parts/basic";
import { Confirm, FormDialog, show } from "../parts/dialog";
import { FilterBar, useFilter } from "../parts/filterbar";
import { Icon } from "../parts/icons";
import { fixedTerms, JobList } from "../parts/joblist";
import { PauseButton, Status } from "../parts/queuebits";
import { attempt } from "../parts/toast";
import { EnqueueDialog } from "../shell/enqueue";
import { go, hrefOf } from "../shell/router";
import { s } from "../strings";
import facts from "../generated/facts";
import { Throughput } from "./home";

const POLL_MS = 3_000;
const SERIES_MS = 15_000;
const COUNTED = ["pending", "active", "completed", "retrying", "dead", "cancelled", "scheduled", "held"] as const;

export function QueuePage({ name }: { name: string }) {
  useTitle(name);
  const queue = useQuery<QueueDetail>(`queue ${name}`, () => get(queuePath(name)), { everyMs: POLL_MS, tags: ["queue"] });
  const series = useQuery<Point[]>(may("queue_throughput") ? `throughput ${name}` : null, () => get(queuePath(name, "/throughput"), { minutes: 60 }), {
    everyMs: SERIES_MS,
  });
  useEvents({ queues: [name] }, () => touch("queue", "jobs of queue"));
  const filtered = useFilter(fixedTerms({ queue: name }));
  return (
    <>
      <Head title={name} about={queue.data && <Status status={queue.data.status} />}>
        {queue.data && <Controls queue={queue.data} />}
      </Head>
      <Loaded result={queue}>
        {(data) => (
          <>
            <Figures queue={data} />
            {series.data && series.data.some((point) => point.enqueued + point.completed + point.failed > 0) && <Throughput points={series.data} />}
          </>
        )}
      </Loaded>
      {may("search") && queue.error?.status !== 404 && (
        <>
          <FilterBar
            filtered={filtered}
            hidden={["queue"]}
            {...(queue.data ? { counts: Object.fromEntries(COUNTED.map((state) => [state, queue.data![state]])) } : {})}
          />
          <JobList
            label={s.queue.jobsOf(name)}
            filtered={filtered}
            columns={["id", "state", "attempt", "priority", "payload", "error", "created"]}
            states={facts.states}
            tags={["jobs of queue"]}
            empty={{ icon: "queues", title: s.queue.empty, hint: `corvo enqueue ${quoted(name)} '{"hello": "world"}'` }}
          />
        </>
      )}
    </>
  );
}

function Figures({ queue }: { queue: QueueDetail }) {
  const limit = queue.max_concurrency ?? null;
  const kept = (ms: number | null) => (ms === null ? s.queue.forever : span(ms));
  return (
    <dl class="figures">
      <Figure
        label={s.states.pending}
        value={short(queue.pending)}
        more={queue.oldest_pending_age_ms != null ? s.home.oldest(span(queue.oldest_pending_age_ms)) : s.home.noneWaits}
        tone="pending"
      />
      <Figure
        label={s.states.active}
        value={
          <>
            {short(queue.active)}
            {limit !== null && <small> / {whole(limit)}</small>}
          </>
        }
        more={limit === null ? s.queue.noLimit : <meter min={0} max={limit} value={Math.min(limit, queue.active)} aria-label={s.queue.concurrency} />}
        tone="active"
      />
      <Figure label={s.states.completed} value={short(queue.completed)} more={s.queue.ever(short(queue.completed_total))} tone="completed" />
      <Figure label={s.states.retrying} value={short(queue.retrying)} more={s.queue.failures(short(queue.failed))} tone="retrying" />
      <Figure label={s.states.dead} value={short(queue.dead)} more={s.queue.keptFor(kept(queue.retention.dead_ms))} tone="dead" />
      <Figure
        label={s.queue.throttle}
        value={queue.rate_limit ? `${whole(queue.rate_limit)} / ${span(queue.rate_window_ms ?? 0)}` : "–"}
        more={queue.rate_limit ? s.queue.room(whole(queue.rate_room ?? 0)) : s.queue.noLimit}
      />
    </dl>
  );
}

function Controls({ queue }: { queue: QueueDetail }) {
  const { name } = queue;
  const waiting = queue.pending + queue.scheduled + queue.retrying;
  const act = (action: string) => async () => {
    await post(queuePath(name, action));
    refresh();
  };
  return (
    <>
      <CopyAs call={{ method: "GET", path: queuePath(name) }} command={`queue show ${quoted(name)}`} />
      <PauseButton name={name} isPaused={queue.paused || queue.draining} hasLabel />
      {may("drain_queue") && !queue.draining && !queue.paused && (
        <button onClick={() => void attempt(act("/drain"), s.queue.draining(name))}>{s.queue.drain}</button>
      )}
      {may("set_concurrency") && <button onClick={() => show(<LimitsDialog queue={queue} />)}>{s.queue.limits}</button>}
      {may("clear_queue") && (
        <button
          class="danger"
          disabled={waiting === 0}
          onClick={() =>
            show(
              <Confirm
                title={s.queue.clear}
                text={s.queue.clearText(whole(waiting), name)}
                submit={s.queue.clearSubmit(whole(waiting))}
                retype={name}
                onConfirm={async () => {
                  const answer = await post<{ deleted: number }>(queuePath(name, "/clear"));
                  refresh();
                  return s.queue.cleared(whole(answer.deleted));
                }}
              />,
            )
          }
        >
          {s.queue.clear}
        </button>
      )}
      {may("delete_queue") && (
        <button
          class="danger"
          onClick={() =>
            show(
              <Confirm
                title={s.queue.delete}
                text={s.queue.deleteText(whole(queue.left), name)}
                submit={s.queue.delete}
                retype={name}
                onConfirm={async () => {
                  await ask({ method: "DELETE", path: queuePath(name) });
                  go(hrefOf("queues"));
                  refresh();
                  return s.queue.deleted(name);
                }}
              />,
            )
          }
        >
          {s.queue.delete}
        </button>
      )}
      {may("enqueue") && (
        <button onClick={() => show(<EnqueueDialog queue={name} />)}>
          <Icon name="plus" /> {s.enqueue.open}
        </button>
      )}
    </>
  );
}

/** Limits that are changed at once: what they would mean for the jobs that are there is said below each. */
function LimitsDialog({ queue }: { queue: QueueDetail }) {
  const { name } = queue;
  const save = async (form: FormData) => {
    const text = (field: string) => String(form.get(field) ?? "").trim();
    const max = Number(text("max") || 0);
    if (max !== (queue.max_concurrency ?? 0)) await post(queuePath(name, "/concurrency"), { max });
    const rate = Number(text("rate") || 0);
    const period = text("period");
    if (rate === 0 && queue.rate_limit) await ask({ method: "DELETE", path: queuePath(name, "/throttle") });
    if (rate > 0) await post(queuePath(name, "/throttle"), { rate, period });
    const retention = Object.fromEntries(["completed", "dead", "cancelled"].filter((state) => text(state)).map((state) => [state, text(state)]));
    if (Object.keys(retention).length > 0) await post(queuePath(name, "/retention"), retention);
    refresh();
    return s.queue.saved;
  };
  return (
    <FormDialog title={s.queue.limitsOf(name)} submit={s.save} onSubmit={save}>
      <label>
        {s.queue.concurrency}
        <input name="max" type="number" min={0} max={1_000_000} defaultValue={String(queue.max_concurrency ?? "")} placeholder={s.queue.noLimit} />
        <small>{s.queue.nowActive(whole(queue.active), whole(queue.pending))}</small>
      </label>
      <div class="pair">
        <label>
          {s.queue.rate}
          <input name="rate" type="number" min={0} max={1_000_000} defaultValue={String(queue.rate_limit ?? "")} placeholder={s.queue.noLimit} />
        </label>
        <label>
          {s.queue.period}
          <input name="period" defaultValue={queue.rate_window_ms ? `${queue.rate_window_ms}ms` : "1m"} />
        </label>
      </div>
      {may("set_retention") && (
        <fieldset>
          <legend>{s.queue.retention}</legend>
          <div class="pair three">
            {(["completed", "dead", "cancelled"] as const).map((state) => {
              const ms = queue.retention[`${state}_ms`];
              return (
                <label key={state}>
                  {s.states[state]}
                  <input name={state} placeholder={ms === null ? s.queue.forever : span(ms)} autocomplete="off" />
                </label>
              );
            })}
          </div>
          <small>{s.queue.retentionHint}</small>
        </fieldset>
      )}
    </FormDialog>
  );
}
