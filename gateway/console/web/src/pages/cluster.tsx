/** The cluster: every shard on every node, who leads, who lags. */

import { useState } from "preact/hooks";
import { get, post } from "../api/client";
import { refresh, useQuery } from "../api/query";
import { may } from "../api/session";
import type { Cluster as ClusterStatus, Shard } from "../api/types";
import { bytes, short, span, whole } from "../model/format";
import { Card, CopyAs, Empty, Figure, Head, Loaded, Time, useTitle } from "../parts/basic";
import { Confirm, show } from "../parts/dialog";
import { s } from "../strings";

const POLL_MS = 2_000;
const LAG_WARN = 100;
const HEARD_WARN_MS = 2_000;

export function Cluster() {
  useTitle(s.nav.cluster);
  const result = useQuery<ClusterStatus>("cluster", () => get("/cluster/status"), { everyMs: POLL_MS });
  return (
    <>
      <Head title={s.nav.cluster} about={result.data && `${result.data.mode} · ${result.data.version}`}>
        <CopyAs call={{ method: "GET", path: "/cluster/status" }} command="cluster status" />
      </Head>
      <Loaded result={result}>
        {(data) => (
          <>
            <Health cluster={data} />
            <Matrix cluster={data} />
            <ShardTable shards={data.groups} />
            <Incidents cluster={data} />
          </>
        )}
      </Loaded>
    </>
  );
}

function Health({ cluster }: { cluster: ClusterStatus }) {
  const nodes = cluster.nodes ?? [];
  const reachable = nodes.filter((node) => node.is_reachable).length;
  const restarts = Object.values(cluster.restarts ?? {}).reduce((sum, one) => sum + one, 0);
  const isWell = cluster.status === "healthy";
  return (
    <>
      {!isWell && (
        <section class="verdict bad" aria-label={s.cluster.status}>
          <p class="word">{cluster.status}</p>
          <ul>
            {(cluster.reasons ?? []).map((reason) => (
              <li key={reason}>{reason}</li>
            ))}
          </ul>
        </section>
      )}
      <dl class="figures">
        <Figure label={s.cluster.status} value={cluster.status} tone={isWell ? "completed" : "dead"} />
        <Figure label={s.cluster.nodes} value={nodes.length > 0 ? `${reachable} / ${nodes.length}` : "1"} more={s.cluster.answeredBy(cluster.node_id)} />
        <Figure label={s.cluster.shards} value={cluster.shards} more={cluster.fsync ? s.cluster.synced : s.cluster.notSynced} />
        <Figure label={s.cluster.readDb} value={cluster.mirror ? `${Math.round(cluster.mirror.lag_ms)} ms` : "–"} more={cluster.mirror ? s.cluster.rows(short(cluster.mirror.rows_total)) : ""} />
        <Figure label={s.cluster.queueTime} value={seconds(cluster.queue_time_hist?.p99)} more={s.cluster.p50(seconds(cluster.queue_time_hist?.p50))} />
        <Figure label={s.cluster.restarts} value={whole(restarts)} tone={restarts > 0 ? "retrying" : ""} />
      </dl>
    </>
  );
}

const seconds = (value: number | undefined): string =>
  value === undefined ? "–" : value < 1 ? `${(value * 1000).toFixed(value < 0.01 ? 2 : 0)} ms` : span(value * 1000);

function Matrix({ cluster }: { cluster: ClusterStatus }) {
  const [picked, pick] = useState<number | null>(null);
  const names = (cluster.nodes ?? []).map((node) => node.node_id);
  const nodes = names.length > 0 ? names : [cluster.node_id];
  const isReachable = (id: string) => (cluster.nodes ?? []).find((node) => node.node_id === id)?.is_reachable ?? true;
  return (
    <Card title={s.cluster.matrix} side={<Legend />}>
      <div class="table" tabIndex={0} role="region" aria-label={s.cluster.matrix}>
        <table class="matrix">
          <thead>
            <tr>
              <th scope="col">{s.cluster.shard}</th>
              {nodes.map((id) => (
                <th key={id} scope="col">
                  <i class={isReachable(id) ? "dot good" : "dot bad"} /> {id}
                  <small>{isReachable(id) ? s.cluster.leads(cluster.groups.filter((group) => group.leader_id === id).length) : s.home.unreachable}</small>
                  {may("cluster_transfer") && nodes.length > 1 && isReachable(id) && <LeadAll node={id} />}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {cluster.groups.map((shard) => (
              <tr key={shard.shard} class={picked === shard.shard ? "selected" : ""} onClick={() => pick(shard.shard)}>
                <th scope="row">
                  {shard.shard}
                  <small>{s.cluster.term(shard.term)}</small>
                </th>
                {nodes.map((id) => (
                  <td key={id}>
                    <Cell shard={shard} node={id} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

const Legend = () => (
  <span class="legend">
    <i class="cell leader" /> {s.cluster.roles.leader} <i class="cell follower" /> {s.cluster.roles.follower} <i class="cell silent" /> {s.cluster.roles.silent}
  </span>
);

function Cell({ shard, node }: { shard: Shard; node: string }) {
  const replica = (shard.replicas ?? []).find((one) => one.node_id === node);
  const isLeader = shard.leader_id === node;
  if (!replica && !isLeader) return <span class="cell silent">–</span>;
  const lag = replica?.lag ?? 0;
  const heard = replica?.last_contact_ms ?? null;
  const isLate = lag > LAG_WARN || (heard !== null && heard > HEARD_WARN_MS);
  const role = isLeader ? "leader" : heard === null && replica?.lag == null ? "silent" : isLate ? "late" : (replica?.role ?? "follower");
  const applied = replica?.applied_index ?? (isLeader ? shard.applied_index : undefined);
  return (
    <span class={`cell ${role}`} title={replica?.error ?? ""}>
      <b>{s.cluster.roles[role as "leader"] ?? role}</b>
      <small>
        {applied !== undefined && `#${whole(applied)}`}
        {!isLeader && replica?.lag != null && ` · ${s.cluster.lag(whole(lag))}`}
        {!isLeader && heard !== null && ` · ${span(heard)}`}
      </small>
    </span>
  );
}

const LeadAll = ({ node }: { node: string }) => (
  <button
    class="quiet"
    onClick={() =>
      show(
        <Confirm
          title={s.cluster.leadAll}
          text={s.cluster.leadAllText(node)}
          submit={s.cluster.leadAll}
          onConfirm={async () => {
            await post("/cluster/transfer", { node_id: node });
            refresh();
            return s.cluster.leading(node);
          }}
        />,
      )
    }
  >
    {s.cluster.leadAll}
  </button>
);

function ShardTable({ shards }: { shards: readonly Shard[] }) {
  const columns: [string, (shard: Shard) => preact.ComponentChild][] = [
    [s.cluster.leader, (shard) => shard.leader_id || <span class="bad">{s.cluster.noLeader}</span>],
    [s.cluster.log, (shard) => `${short(shard.log_entries)} · ${bytes(shard.replicas?.find((one) => one.node_id === shard.node_id)?.log_bytes ?? 0)}`],
    [s.cluster.operations, (shard) => short(shard.operations_total)],
    [s.cluster.perEntry, (shard) => shard.batch_size_avg.toFixed(1)],
    [s.cluster.sync, (shard) => `${shard.sync_ms_avg.toFixed(2)} ms`],
    [s.cluster.leases, (shard) => whole(shard.leases)],
    [s.cluster.parked, (shard) => whole(shard.fetches_parked)],
    [s.cluster.memory, (shard) => bytes(shard.memory_bytes)],
    [s.cluster.snapshot, (shard) => (shard.snapshot ? `#${whole(shard.snapshot.latest_index)}` : "–")],
  ];
  return (
    <Card title={s.cluster.shards}>
      <div class="table" tabIndex={0} role="region" aria-label={s.cluster.shards}>
        <table>
          <thead>
            <tr>
              <th scope="col">{s.cluster.shard}</th>
              {columns.map(([title]) => (
                <th key={title} scope="col" class="number">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shards.map((shard) => (
              <tr key={shard.shard}>
                <th scope="row">{shard.shard}</th>
                {columns.map(([title, cell]) => (
                  <td key={title} class="number">
                    {cell(shard)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

function Incidents({ cluster }: { cluster: ClusterStatus }) {
  const incidents = cluster.incidents ?? [];
  return (
    <Card title={s.cluster.incidents}>
      {incidents.length === 0 ? (
        <Empty icon="check" title={s.cluster.noIncidents} />
      ) : (
        <ul class="plain-list">
          {incidents.map((one) => (
            <li key={one.at + one.process}>
              <Time at={one.at} /> <b>{one.process}</b> {one.reason}
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

