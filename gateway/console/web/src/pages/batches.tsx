/** Batches: how far each is, and what follows it. */

import { get, post } from "../api/client";
import { useEvents } from "../api/live";
import { refresh, touch, useQuery } from "../api/query";
import { may } from "../api/session";
import type { Batch, BatchesAnswer } from "../api/types";
import { percent, whole } from "../model/format";
import { Card, CopyAs, Empty, Figure, Head, Loaded, Time, useTitle } from "../parts/basic";
import { FilterBar, useFilter } from "../parts/filterbar";
import { fixedTerms, JobList } from "../parts/joblist";
import { Json } from "../parts/json";
import { Table, type Column } from "../parts/table";
import { attempt } from "../parts/toast";
import { go, hrefOf, JobLink, Link, QueueLink } from "../shell/router";
import { s } from "../strings";

const POLL_MS = 5_000;
const PAGE = 200;

const done = (batch: Batch): number => batch.total - batch.pending;

const Share = ({ batch }: { batch: Batch }) => (
  <span class="share">
    <progress max={Math.max(1, batch.total)} value={done(batch)} aria-label={s.batches.doneOf(whole(done(batch)), whole(batch.total))} />
    {percent(done(batch), batch.total)}
  </span>
);

const COLUMNS: readonly Column<Batch>[] = [
  { key: "id", title: s.batches.batch, cell: (one) => <Link to={`batches/${encodeURIComponent(one.id)}`} class="mono">{one.id}</Link> },
  { key: "about", title: s.batches.description, isWide: true, rank: 2, cell: (one) => one.description ?? "" },
  { key: "state", title: s.columns.state, cell: (one) => <span class={`status ${one.state}`}>{s.batches.states[one.state as "open"] ?? one.state}</span> },
  { key: "share", title: s.batches.progress, cell: (one) => <Share batch={one} /> },
  { key: "total", title: s.batches.jobs, isNumber: true, cell: (one) => whole(one.total) },
  { key: "dead", title: s.states.dead, isNumber: true, rank: 2, cell: (one) => <span class={one.dead ? "count-of dead" : "faint"}>{whole(one.dead)}</span> },
  { key: "created", title: s.columns.created, rank: 2, cell: (one) => <Time at={one.created_at} /> },
];

export function Batches() {
  useTitle(s.nav.batches);
  const result = useQuery<BatchesAnswer>("batches", () => get("/batches", { limit: PAGE }), { everyMs: POLL_MS, tags: ["batches"] });
  useEvents({ types: ["batch_completed"] }, () => touch("batches"));
  return (
    <>
      <Head title={s.nav.batches} about={s.batches.about}>
        <CopyAs call={{ method: "GET", path: "/batches" }} />
      </Head>
      <Loaded result={result}>
        {({ batches, has_more }) =>
          batches.length === 0 ? (
            <Empty icon="batch" title={s.batches.empty} hint="corvo batch create" />
          ) : (
            <>
              <Table label={s.nav.batches} rows={batches} columns={COLUMNS} idOf={(one) => one.id} onOpen={(one) => go(hrefOf(`batches/${one.id}`))} />
              {has_more && <p class="faint">{s.batches.newest(PAGE)}</p>}
            </>
          )
        }
      </Loaded>
    </>
  );
}

export function BatchPage({ name: id }: { name: string }) {
  useTitle(id);
  const path = `/batches/${encodeURIComponent(id)}`;
  const result = useQuery<Batch>(`batch ${id}`, () => get(path), { everyMs: POLL_MS, tags: ["batches"] });
  const filtered = useFilter(fixedTerms({ batch_id: id }));
  useEvents({ types: ["batch_completed"] }, () => touch("batches"));
  const seal = async () => {
    await post(`${path}/seal`);
    refresh();
  };
  return (
    <>
      <Loaded result={result}>
        {(one) => (
          <>
            <Head title={<span class="mono">{id}</span>} about={one.description}>
              <CopyAs call={{ method: "GET", path }} command={`batch show ${id}`} />
              {one.state === "open" && may("seal_batch") && <button onClick={() => void attempt(seal, s.batches.sealed)}>{s.batches.seal}</button>}
            </Head>
            <dl class="figures">
              <Figure label={s.batches.progress} value={<Share batch={one} />} more={s.batches.states[one.state as "open"] ?? one.state} />
              <Figure label={s.states.completed} value={whole(one.completed)} tone="completed" />
              <Figure label={s.states.dead} value={whole(one.dead)} tone="dead" />
              <Figure label={s.states.cancelled} value={whole(one.cancelled)} />
              <Figure label={s.batches.left} value={whole(one.pending)} tone="pending" />
            </dl>
            <div class="grid two">
              {(["on_complete", "on_success", "on_failure"] as const).map((name) => {
                const callback = one[name];
                return callback ? (
                  <Card key={name} title={s.batches.callbacks[name]}>
                    <p>
                      <QueueLink name={callback.queue} /> {callback.job_id ? <JobLink id={callback.job_id} /> : <span class="faint">{s.batches.notYet}</span>}
                    </p>
                    <Json title={s.job.payload} value={callback.payload} />
                  </Card>
                ) : null;
              })}
            </div>
          </>
        )}
      </Loaded>
      {may("search") && (
        <>
          <FilterBar filtered={filtered} hidden={["batch_id"]} />
          <JobList
            label={s.batches.jobs}
            filtered={filtered}
            columns={["id", "queue", "state", "attempt", "payload", "error", "created"]}
            states={[]}
            tags={["batches"]}
            empty={{ icon: "batch", title: s.batches.noJobs }}
          />
        </>
      )}
    </>
  );
}
