/** The picture of a job's life: states at fixed places, arrows from the server's transition table, and one job's way. */

import facts from "../generated/facts";

export type StateName = (typeof facts.states)[number];

export const NODE = { width: 104, height: 36 } as const;
export const PICTURE = { width: 760, height: 330 } as const;

export const PLACES: Readonly<Record<StateName, readonly [number, number]>> = {
  scheduled: [90, 60],
  held: [90, 250],
  pending: [280, 150],
  retrying: [375, 240],
  active: [470, 150],
  completed: [665, 50],
  cancelled: [665, 150],
  dead: [665, 250],
};

export interface Edge {
  from: StateName;
  to: StateName;
  verbs: readonly string[];
  isMain: boolean; // always drawn; the others only where the job went that way
}

// What can happen from nearly everywhere would hide the picture behind its arrows.
const SIDE_VERBS = new Set(["cancel", "expire", "hold", "reschedule", "forsake", "requeue", "continue", "reclaim", "snooze"]);

export const EDGES: readonly Edge[] = (() => {
  const found = new Map<string, { from: StateName; to: StateName; verbs: string[] }>();
  for (const rule of facts.rules) {
    for (const from of rule.from) {
      const key = `${from} ${rule.to}`;
      const edge = found.get(key) ?? { from, to: rule.to as StateName, verbs: [] };
      edge.verbs.push(rule.verb);
      found.set(key, edge);
    }
  }
  return [...found.values()].map((edge) => ({
    ...edge,
    isMain: edge.from !== edge.to && edge.verbs.some((verb) => !SIDE_VERBS.has(verb) && (verb !== "run_again" || edge.from === "dead")),
  }));
})();

export interface Told {
  type: string;
  at_ns: number;
  data?: unknown;
}

interface Lived {
  state: string;
  created_at: string;
  completed_at?: string | null;
  failed_at?: string | null;
  attempts?: readonly { outcome: string; started_at?: string | null; ended_at?: string | null }[];
}

const ns = (at: string): number => Date.parse(at) * 1e6;

/** What the job itself tells of its life, for when its events are not kept any more. Holds and moves are not in it. */
export function storyOf(job: Lived): Told[] {
  const told: Told[] = [{ type: "enqueued", at_ns: ns(job.created_at) }];
  const attempts = job.attempts ?? [];
  attempts.forEach((attempt, at) => {
    if (at > 0 && attempt.started_at) told.push({ type: "promoted", at_ns: ns(attempt.started_at) });
    if (attempt.started_at) told.push({ type: "started", at_ns: ns(attempt.started_at) });
    if (attempt.ended_at && attempt.outcome) told.push({ type: attempt.outcome, at_ns: ns(attempt.ended_at) });
  });
  if (job.state === "dead") told.push({ type: "dead", at_ns: ns(job.failed_at ?? job.created_at) });
  if (job.state === "completed" && told[told.length - 1]?.type !== "completed" && job.completed_at) {
    told.push({ type: "completed", at_ns: ns(job.completed_at) });
  }
  return told;
}

const LEADS_TO = new Map<string, StateName>(
  facts.rules.flatMap((rule) => rule.told.map((name) => [name, rule.to as StateName] as const)),
);
// `failed` is told for the last attempt too, followed by `dead`.
LEADS_TO.set("failed", "retrying");

export interface Step {
  state: StateName;
  atNs: number; // 0: not known
}

/** The states that the events tell of, in order, ending in the state that the job has. */
export function wayOf(events: readonly Told[], state: string, createdNs: number): Step[] {
  const steps: Step[] = [];
  events.forEach((event, at) => {
    const next = events[at + 1]?.type;
    if (event.type === "enqueued") steps.push({ state: bornAs(event, next, state), atNs: event.at_ns });
    const goal = event.type === "failed" && next === "dead" ? undefined : LEADS_TO.get(event.type);
    if (goal !== undefined && !isStill(event, goal, steps)) steps.push({ state: goal, atNs: event.at_ns });
  });
  if (steps.length === 0) steps.push({ state: state as StateName, atNs: createdNs });
  const last = steps[steps.length - 1];
  if (last && last.state !== state) steps.push({ state: state as StateName, atNs: 0 });
  return steps;
}

/** A rescheduled job that was scheduled already stays where it is. */
const isStill = (event: Told, goal: StateName, steps: readonly Step[]): boolean =>
  event.type === "rescheduled" && steps[steps.length - 1]?.state === goal;

function bornAs(event: Told, next: string | undefined, state: string): StateName {
  const told = (event.data as { state?: string; status?: string } | undefined)?.state;
  if (told !== undefined && told in PLACES) return told as StateName;
  if (next === undefined) return state as StateName;
  if (next === "promoted") return "scheduled";
  return next === "approved" || next === "rejected" ? "held" : "pending";
}

export const wentBy = (way: readonly Step[], edge: Edge): boolean =>
  way.some((step, at) => step.state === edge.from && way[at + 1]?.state === edge.to);

/** A curve from border to border; the way back runs on the other side. */
export function pathOf({ from, to }: Edge): string {
  const [x1, y1] = PLACES[from];
  const [x2, y2] = PLACES[to];
  if (from === to) return `M${x1 - 22} ${y1 - 22} C${x1 - 40} ${y1 - 58} ${x1 + 40} ${y1 - 58} ${x1 + 22} ${y1 - 22}`;
  const [dx, dy] = [x2 - x1, y2 - y1];
  const length = Math.hypot(dx, dy) || 1;
  const [nx, ny] = [-dy / length, dx / length];
  const bend = Math.abs(dx) > 300 ? 56 : 14;
  const [cx, cy] = [(x1 + x2) / 2 + nx * bend, (y1 + y2) / 2 + ny * bend];
  const begin = onBorder([x1, y1], [cx, cy]);
  const end = onBorder([x2, y2], [cx, cy]);
  return `M${begin.join(" ")} Q${Math.round(cx)} ${Math.round(cy)} ${end.join(" ")}`;
}

function onBorder([x, y]: readonly [number, number], [tx, ty]: readonly [number, number]): [number, number] {
  const [dx, dy] = [tx - x, ty - y];
  const [w, h] = [NODE.width / 2 + 4, NODE.height / 2 + 4];
  const scale = Math.min(dx === 0 ? Infinity : w / Math.abs(dx), dy === 0 ? Infinity : h / Math.abs(dy));
  return [Math.round(x + dx * scale), Math.round(y + dy * scale)];
}
