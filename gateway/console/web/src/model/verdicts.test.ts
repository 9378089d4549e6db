import { expect, test } from "vitest";
import type { Cluster, Queue, Worker } from "../api/types";
import { actionsFor } from "./actions";
import { findings, type Seen } from "./verdicts";

const queue = (name: string, more: Partial<Queue> = {}): Queue =>
  ({ name, paused: false, pending: 0, active: 0, held: 0, completed: 0, dead: 0, scheduled: 0, retrying: 0, cancelled: 0, ...more }) as Queue;
const worker = (...queues: string[]): Worker => ({ id: "w", queues }) as Worker;
const kinds = (seen: Partial<Seen>) =>
  findings({ queues: [], workers: [], errors: [], cluster: null, ...seen }).map((one) => `${one.severity} ${one.kind}`);

test("nothing to say where all is well", () => {
  expect(kinds({ queues: [queue("a", { pending: 3, oldest_pending_age_ms: 500 })], cluster: { status: "healthy" } as Cluster })).toEqual([]);
});

test("a queue that waits without a worker is worse than one that is behind", () => {
  const late = { pending: 5, oldest_pending_age_ms: 90_000 };
  expect(kinds({ queues: [queue("a", late), queue("b", late)], workers: [worker("a")] })).toEqual(["bad no_worker", "warn slow"]);
  expect(kinds({ queues: [queue("a", late)], workers: null })).toEqual(["warn slow"]);
  expect(kinds({ queues: [queue("a", { ...late, paused: true })] })).toEqual(["warn paused"]);
});

test("the worst comes first", () => {
  const seen = { queues: [queue("a", { held: 2, dead: 1 })], cluster: { status: "unavailable" } as Cluster };
  expect(kinds(seen)).toEqual(["bad cluster", "warn dead", "note held"]);
});

test("only what the transition table allows is offered", () => {
  expect(actionsFor(["held"]).map((action) => action.name)).toEqual(["approve", "reject", "cancel", "move", "change_priority", "delete"]);
  expect(actionsFor(["completed"]).map((action) => action.name)).toEqual(["retry", "move", "delete"]);
});
