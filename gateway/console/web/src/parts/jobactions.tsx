/** What can be done to one job: only what its state and the viewer's permissions allow. */

import { ask, jobPath, post } from "../api/client";
import { refresh } from "../api/query";
import { may } from "../api/session";
import type { Job } from "../api/types";
import { ACTIONS, type Action } from "../model/actions";
import { EnqueueDialog } from "../shell/enqueue";
import { go, hrefOf } from "../shell/router";
import { s } from "../strings";
import { Confirm, FormDialog, show } from "./dialog";
import { attempt } from "./toast";

const ENDED = ["completed", "dead", "cancelled"];

export function JobActions({ job }: { job: Job }) {
  const allowed = ACTIONS.filter((action) => action.states.includes(job.state) && may(action.endpoint));
  const isEnded = ENDED.includes(job.state);
  return (
    <>
      {allowed.map((action) => (
        <button key={action.name} class={action.isDangerous ? "danger" : ""} onClick={() => act(action, job)}>
          {s.actions[action.name].title}
        </button>
      ))}
      {may("reschedule") && ["pending", "scheduled", "retrying"].includes(job.state) && (
        <button onClick={() => show(<RescheduleDialog job={job} />)}>{s.job.reschedule}</button>
      )}
      {may("replay") && job.checkpoint !== undefined && isEnded && (
        <button onClick={() => void attempt(() => replay(job), s.job.replayed)}>{s.job.replay}</button>
      )}
      {may("enqueue") && (
        <button onClick={() => show(<EnqueueDialog from={job} title={isEnded ? s.job.editTitle : s.job.cloneTitle} />)}>
          {isEnded ? s.job.editAndRetry : s.job.clone}
        </button>
      )}
    </>
  );
}

export function act(action: Action, job: { id: string; queue: string }): void {
  const words = s.actions[action.name];
  const send = async (body?: unknown) => {
    await post(jobPath(job.id, `/${action.name === "change_priority" ? "priority" : action.name}`), body);
    refresh();
  };
  switch (action.name) {
    case "delete":
      return show(
        <Confirm
          title={words.title}
          text={s.job.deleteText(job.id)}
          submit={words.title}
          onConfirm={async () => {
            await ask({ method: "DELETE", path: jobPath(job.id) });
            go(hrefOf(`queues/${job.queue}`));
            refresh();
            return words.done;
          }}
        />,
      );
    case "cancel":
      return show(<Confirm title={words.title} text={words.about} submit={words.title} onConfirm={async () => (await send({}), words.done)} />);
    case "move":
      return show(<MoveDialog job={job} />);
    case "change_priority":
      return show(
        <FormDialog title={words.title} submit={words.title} onSubmit={async (form) => (await send({ priority: form.get("priority") }), words.done)}>
          <label>
            {s.enqueue.priority}
            <select name="priority" autofocus>
              {["critical", "high", "normal"].map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
        </FormDialog>,
      );
    case "hold":
    case "reject":
      return show(
        <FormDialog
          title={words.title}
          submit={words.title}
          isDangerous={action.isDangerous}
          onSubmit={async (form) => (await send({ reason: String(form.get("reason") ?? "") }), words.done)}
        >
          <p>{words.about}</p>
          <label>
            {s.actions.reason}
            <input name="reason" maxLength={256} autocomplete="off" autofocus />
          </label>
        </FormDialog>,
      );
    default:
      void attempt(send, words.done);
  }
}

function MoveDialog({ job }: { job: { id: string; queue: string } }) {
  const words = s.actions.move;
  const send = async (form: FormData) => {
    await post(jobPath(job.id, "/move"), {
      queue: String(form.get("queue")).trim(),
      reset_attempts: form.get("reset") === "on",
      keep_priority: form.get("keep") === "on",
    });
    refresh();
    return words.done;
  };
  return (
    <FormDialog title={words.title} submit={words.title} onSubmit={send}>
      <label>
        {words.queue}
        <input name="queue" required maxLength={200} autocomplete="off" autofocus />
      </label>
      <label class="tick">
        <input type="checkbox" name="keep" defaultChecked /> {words.keep}
      </label>
      <label class="tick">
        <input type="checkbox" name="reset" /> {words.reset}
      </label>
    </FormDialog>
  );
}

function RescheduleDialog({ job }: { job: Job }) {
  const send = async (form: FormData) => {
    const [at, delay] = [String(form.get("at") ?? ""), String(form.get("delay") ?? "").trim()];
    await post(jobPath(job.id, "/reschedule"), delay ? { delay } : { scheduled_at: new Date(at).toISOString() });
    refresh();
    return s.job.rescheduled;
  };
  return (
    <FormDialog title={s.job.reschedule} submit={s.job.reschedule} onSubmit={send}>
      <label>
        {s.job.at}
        <input type="datetime-local" name="at" step={1} />
      </label>
      <label>
        {s.job.orDelay}
        <input name="delay" placeholder="10m" autocomplete="off" />
      </label>
    </FormDialog>
  );
}

async function replay(job: Job): Promise<void> {
  const made = await post<{ job_id: string }>(jobPath(job.id, "/replay"), { from: 1 });
  go(hrefOf(`jobs/${made.job_id}`));
}
