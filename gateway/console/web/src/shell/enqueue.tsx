/** The dialog for a new job; also for a copy of one, or one that is changed and tried again. */

import { useState } from "preact/hooks";
import { get, post } from "../api/client";
import { refresh, useQuery } from "../api/query";
import type { Job, Queue } from "../api/types";
import { Exact, stringify } from "../model/exact";
import { FormDialog } from "../parts/dialog";
import { s } from "../strings";
import { go, hrefOf } from "./router";

const PRIORITIES = ["critical", "high", "normal"] as const;

interface EnqueueProps {
  queue?: string;
  from?: Job; // what to copy
  title?: string;
}

function jsonOf(text: string, name: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new Error(`${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** JSON would lose digits that the server keeps. */
const hasExact = (value: unknown): boolean =>
  value instanceof Exact || (typeof value === "object" && value !== null && Object.values(value).some(hasExact));

export function EnqueueDialog({ queue = "", from, title = s.enqueue.title }: EnqueueProps) {
  const { data } = useQuery<Queue[]>("queues", () => get("/queues"), { tags: ["queues"] });
  const [payload, setPayload] = useState(stringify(from?.payload ?? {}));
  const losesDigits = hasExact(from?.payload);
  const send = async (form: FormData) => {
    const text = (name: string) => String(form.get(name) ?? "").trim();
    if (/\d{16}/.test(payload) && losesDigits) throw new Error(s.enqueue.losesDigits);
    const tags = text("tags");
    const body = {
      queue: text("queue"),
      payload: jsonOf(payload, s.enqueue.payload),
      priority: text("priority"),
      ...(text("max_retries") ? { max_retries: Number(text("max_retries")) } : {}),
      ...(text("delay") ? { delay: text("delay") } : {}),
      ...(text("unique_key") ? { unique_key: text("unique_key") } : {}),
      ...(text("expire_after") ? { expire_after: text("expire_after") } : {}),
      ...(tags ? { tags: jsonOf(tags, s.enqueue.tags) } : {}),
    };
    const made = await post<{ job_id: string; unique_existing?: boolean }>("/enqueue", body);
    refresh();
    go(hrefOf(`jobs/${made.job_id}`));
    return made.unique_existing ? s.enqueue.existed : s.enqueue.done;
  };
  return (
    <FormDialog title={title} submit={s.enqueue.submit} onSubmit={send} isWide>
      <div class="pair">
        <label>
          {s.enqueue.queue}
          <input name="queue" list="queue-names" required maxLength={200} defaultValue={from?.queue ?? queue} autocomplete="off" />
          <datalist id="queue-names">
            {(data ?? []).slice(0, 1000).map((one) => (
              <option key={one.name} value={one.name} />
            ))}
          </datalist>
        </label>
        <label>
          {s.enqueue.priority}
          <select name="priority" defaultValue={PRIORITIES[from?.priority ?? 2] ?? "normal"}>
            {PRIORITIES.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
      </div>
      <label>
        {s.enqueue.payload}
        <textarea
          name="payload"
          class="mono"
          rows={10}
          spellcheck={false}
          value={payload}
          onInput={(event) => setPayload(event.currentTarget.value)}
        />
      </label>
      <div class="pair">
        <label>
          {s.enqueue.delay}
          <input name="delay" placeholder="10m" autocomplete="off" />
        </label>
        <label>
          {s.enqueue.maxRetries}
          <input name="max_retries" type="number" min={0} max={1000} defaultValue={from ? String(from.max_retries) : ""} placeholder="3" />
        </label>
        <label>
          {s.enqueue.expire}
          <input name="expire_after" placeholder="1h" autocomplete="off" />
        </label>
        <label>
          {s.enqueue.uniqueKey}
          <input name="unique_key" autocomplete="off" />
        </label>
      </div>
      <label>
        {s.enqueue.tags}
        <input name="tags" class="mono" placeholder='{"tenant": "acme"}' autocomplete="off" defaultValue={from?.tags ? stringify(from.tags, 0) : ""} />
      </label>
    </FormDialog>
  );
}
