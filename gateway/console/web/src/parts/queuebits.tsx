/** What stands for a queue on several pages: its status, its jobs as one bar, its controls. */

import { post, queuePath } from "../api/client";
import { refresh } from "../api/query";
import { may } from "../api/session";
import type { Queue } from "../api/types";
import { whole } from "../model/format";
import { s } from "../strings";
import { Icon } from "./icons";
import { attempt } from "./toast";

type Counts = Pick<Queue, "pending" | "active" | "scheduled" | "retrying" | "held" | "dead">;

const SHOWN = ["active", "pending", "retrying", "scheduled", "held", "dead"] as const;

export function QueueBars({ queue }: { queue: Counts }) {
  const all = SHOWN.reduce((sum, state) => sum + queue[state], 0);
  const told = SHOWN.filter((state) => queue[state] > 0).map((state) => `${whole(queue[state])} ${s.states[state].toLowerCase()}`);
  return (
    <span class="bar" role="img" aria-label={told.join(", ") || s.queues.noJobs} title={told.join("\n")}>
      {all > 0 &&
        SHOWN.map((state) =>
          queue[state] === 0 ? null : <i key={state} class={state} style={{ flexGrow: Math.max(0.02, queue[state] / all) }} />,
        )}
    </span>
  );
}

export const Status = ({ status }: { status: string | undefined }) => (
  <span class={`status ${status ?? "active"}`}>
    {s.queues.statuses[(status ?? "active") as keyof typeof s.queues.statuses] ?? status}
  </span>
);

export function PauseButton({ name, isPaused, hasLabel = false }: { name: string; isPaused: boolean; hasLabel?: boolean }) {
  const action = isPaused ? "resume" : "pause";
  if (!may(isPaused ? "resume_queue" : "pause_queue")) return null;
  const word = isPaused ? s.queues.resume : s.queues.pause;
  const act = async () => {
    await post(queuePath(name, `/${action}`));
    refresh();
  };
  return (
    <button
      class={hasLabel ? "" : "plain"}
      title={`${word} ${name}`}
      aria-label={`${word} ${name}`}
      onClick={() => void attempt(act, isPaused ? s.queues.resumed(name) : s.queues.pausedNow(name))}
    >
      <Icon name={isPaused ? "play" : "pause"} />
      {hasLabel && ` ${word}`}
    </button>
  );
}
