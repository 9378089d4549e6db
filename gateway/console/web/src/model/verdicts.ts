/** What needs a person, from what the server says about itself: the first thing on the home page. Pure. */

import type { Cluster, ErrorGroup, Queue, Worker } from "../api/types";

export type Severity = "bad" | "warn" | "note";

export type Finding =
  | { kind: "no_worker"; severity: Severity; queue: string; pending: number; waitedMs: number }
  | { kind: "slow"; severity: Severity; queue: string; pending: number; waitedMs: number }
  | { kind: "paused"; severity: Severity; queue: string; pending: number }
  | { kind: "failing"; severity: Severity; queue: string; message: string; count: number; jobId: string }
  | { kind: "dead"; severity: Severity; count: number; queues: number }
  | { kind: "held"; severity: Severity; count: number }
  | { kind: "cluster"; severity: Severity; status: string; reasons: readonly string[] };

export const SLOW_MS = 60_000;
export const STUCK_MS = 300_000;
export const FAILING_MIN = 5;
const PER_KIND_MAX = 3;
const ORDER: Record<Severity, number> = { bad: 0, warn: 1, note: 2 };

export interface Seen {
  queues: readonly Queue[];
  workers: readonly Worker[] | null; // null: may not be seen
  errors: readonly ErrorGroup[];
  cluster: Cluster | null;
}

export function findings({ queues, workers, errors, cluster }: Seen): Finding[] {
  const served = workers === null ? null : new Set(workers.flatMap((worker) => worker.queues));
  const waiting = queues
    .filter((queue) => !queue.paused && queue.pending > 0 && (queue.oldest_pending_age_ms ?? 0) >= SLOW_MS)
    .sort((one, other) => (other.oldest_pending_age_ms ?? 0) - (one.oldest_pending_age_ms ?? 0))
    .map((queue): Finding => {
      const waitedMs = queue.oldest_pending_age_ms ?? 0;
      const hasNone = served !== null && !served.has(queue.name) && queue.active === 0;
      const severity = hasNone || waitedMs >= STUCK_MS ? "bad" : "warn";
      return { kind: hasNone ? "no_worker" : "slow", severity, queue: queue.name, pending: queue.pending, waitedMs };
    });
  const paused = queues
    .filter((queue) => queue.paused && queue.pending > 0)
    .map((queue): Finding => ({ kind: "paused", severity: "warn", queue: queue.name, pending: queue.pending }));
  const failing = errors
    .filter((group) => group.count >= FAILING_MIN)
    .map((group): Finding => ({
      kind: "failing",
      severity: "warn",
      queue: group.queue,
      message: group.message,
      count: group.count,
      jobId: group.sample_job_id,
    }));
  const found = [...waiting.slice(0, PER_KIND_MAX), ...paused.slice(0, PER_KIND_MAX), ...failing.slice(0, PER_KIND_MAX)];
  const withDead = queues.filter((queue) => queue.dead > 0);
  if (withDead.length > 0) {
    const count = withDead.reduce((sum, queue) => sum + queue.dead, 0);
    found.push({ kind: "dead", severity: "warn", count, queues: withDead.length });
  }
  const held = queues.reduce((sum, queue) => sum + queue.held, 0);
  if (held > 0) found.push({ kind: "held", severity: "note", count: held });
  if (cluster !== null && cluster.status !== "healthy") {
    const severity = cluster.status === "degraded" ? "warn" : "bad";
    found.push({ kind: "cluster", severity, status: cluster.status, reasons: cluster.reasons ?? [] });
  }
  return found.sort((one, other) => ORDER[one.severity] - ORDER[other.severity]);
}
