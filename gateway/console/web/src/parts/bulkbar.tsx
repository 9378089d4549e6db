/** One action on many jobs: those that are ticked, or all that match. First what it would do, then the action. */

import { useEffect, useState } from "preact/hooks";
import { post } from "../api/client";
import { refresh } from "../api/query";
import { may } from "../api/session";
import type { BulkDone, BulkStarted } from "../api/types";
import { actionsFor, type Action } from "../model/actions";
import { without, toFlags, type Filter, type Term } from "../model/filter";
import { whole } from "../model/format";
import { go, hrefOf } from "../shell/router";
import { s } from "../strings";
import { CopyAs, State } from "./basic";
import { Dialog, FormDialog, show } from "./dialog";

export type Target = { kind: "ids"; ids: readonly string[] } | { kind: "filter"; filter: Filter; terms: readonly Term[] };

interface BulkBarProps {
  target: Target;
  count: number;
  isExact: boolean;
  states: readonly string[];
  onClear: () => void;
}

export function BulkBar({ target, count, isExact, states, onClear }: BulkBarProps) {
  const actions = may("bulk") ? actionsFor(states).filter((action) => may(action.endpoint)) : [];
  return (
    <div class="bulk" role="toolbar" aria-label={s.bulk.label}>
      <strong>{s.bulk.chosen(whole(count), isExact, target.kind === "filter")}</strong>
      <span class="buttons">
        {actions.map((action) => (
          <button
            key={action.name}
            class={action.isDangerous ? "danger quiet" : "quiet"}
            onClick={() => show(<BulkDialog action={action} target={target} onDone={onClear} />)}
          >
            {s.actions[action.name].title}
          </button>
        ))}
      </span>
      <button class="quiet" onClick={onClear}>
        {s.bulk.clear}
      </button>
    </div>
  );
}

const PAGING = ["sort", "order", "cursor", "limit", "consistent"];

function bodyOf(action: Action, target: Target, more: object): object {
  const chosen =
    target.kind === "ids"
      ? { job_ids: target.ids }
      : { filter: Object.fromEntries(Object.entries(target.filter).filter(([name]) => !PAGING.includes(name))) };
  return { action: action.name, ...chosen, ...more };
}

const COMMANDS: Partial<Record<string, string>> = { change_priority: "priority" };

export function BulkDialog({ action, target, onDone }: { action: Action; target: Target; onDone: () => void }) {
  const [preview, setPreview] = useState<BulkDone | null>(null);
  const [error, setError] = useState("");
  const [more, setMore] = useState<Record<string, string>>(action.name === "change_priority" ? { priority: "high" } : {});
  const isComplete = action.name !== "move" || (more["move_to_queue"] ?? "") !== "";
  useEffect(() => {
    const filled = action.name === "move" ? { move_to_queue: more["move_to_queue"] || "preview" } : more;
    post<BulkDone>("/jobs/bulk", bodyOf(action, target, { ...filled, dry_run: true })).then(setPreview, (reason: Error) =>
      setError(reason.message),
    );
  }, []);
  const run = async (): Promise<string | void> => {
    const answer = await post<BulkDone | BulkStarted>("/jobs/bulk", bodyOf(action, target, more));
    onDone();
    refresh();
    if ("bulk_operation_id" in answer) return go(hrefOf(`bulk/${answer.bulk_operation_id}`));
    if (answer.errors > 0) {
      window.setTimeout(() => show(<Refusals done={answer} />));
      return undefined;
    }
    return s.bulk.done(whole(answer.affected));
  };
  const words = s.actions[action.name];
  const set = (name: string) => (event: { currentTarget: { value: string } }) =>
    setMore({ ...more, [name]: event.currentTarget.value });
  return (
    <FormDialog
      title={words.title}
      submit={preview === null ? words.title : s.bulk.submit(words.title, whole(preview.matched), preview.matched_is_exact !== false)}
      isDangerous={action.isDangerous}
      onSubmit={() => {
        if (preview === null) throw new Error(s.bulk.wait);
        return run();
      }}
      isWide
    >
      <p>{words.about}</p>
      {action.name === "move" && (
        <label>
          {s.actions.move.queue}
          <input required={!isComplete} autocomplete="off" onInput={set("move_to_queue")} autofocus />
        </label>
      )}
      {action.name === "change_priority" && (
        <label>
          {s.enqueue.priority}
          <select value={more["priority"] ?? "high"} onChange={set("priority")}>
            {["critical", "high", "normal"].map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
      )}
      {(action.name === "hold" || action.name === "reject") && (
        <label>
          {s.actions.reason}
          <input maxLength={256} autocomplete="off" onInput={set("reason")} />
        </label>
      )}
      {error && <p class="refused">{error}</p>}
      {preview === null && !error && <p class="faint">{s.bulk.counting}</p>}
      {preview !== null && (
        <>
          <p class="count">{s.bulk.matches(whole(preview.matched), preview.matched_is_exact !== false)}</p>
          {(preview.sample ?? []).length > 0 && (
            <table class="sample">
              <caption>{s.bulk.sample}</caption>
              <tbody>
                {(preview.sample ?? []).slice(0, 5).map((job) => (
                  <tr key={job.id}>
                    <td class="mono">{job.id}</td>
                    <td>{job.queue}</td>
                    <td>
                      <State name={job.state} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
          <CopyAs
            call={{ method: "POST", path: "/jobs/bulk", body: bodyOf(action, target, more) }}
            {...(target.kind === "filter"
              ? { command: `bulk ${COMMANDS[action.name] ?? action.name} ${toFlags(without(target.terms, "sort", "order"))}` }
              : {})}
          />
        </>
      )}
    </FormDialog>
  );
}

/** What was refused, and why. */
function Refusals({ done }: { done: BulkDone }) {
  return (
    <Dialog title={s.bulk.partly(whole(done.affected), whole(done.errors))} isWide>
      <ul class="plain-list">
        {(done.error_samples ?? []).map((one) => (
          <li key={one.job_id}>
            <span class="mono">{one.job_id}</span>: {one.error}
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
