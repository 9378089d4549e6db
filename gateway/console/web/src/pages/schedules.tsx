/** Cron schedules in plain words, with their next runs. */

import { useState } from "preact/hooks";
import { ask, get, post } from "../api/client";
import { useEvents } from "../api/live";
import { refresh, touch, useQuery } from "../api/query";
import { may } from "../api/session";
import type { Schedule } from "../api/types";
import { describeCron } from "../model/cron";
import { stringify } from "../model/exact";
import { whole } from "../model/format";
import { quoted } from "../model/shell";
import { Card, CopyAs, Empty, Head, Loaded, Time, useTitle } from "../parts/basic";
import { Confirm, FormDialog, show } from "../parts/dialog";
import { Icon } from "../parts/icons";
import { Json } from "../parts/json";
import { Table, type Column } from "../parts/table";
import { attempt } from "../parts/toast";
import { go, hrefOf, Link, QueueLink } from "../shell/router";
import { s } from "../strings";

const POLL_MS = 10_000;
const PATH = (id: string, action = ""): string => `/schedules/${encodeURIComponent(id)}${action}`;

const COLUMNS: readonly Column<Schedule>[] = [
  { key: "name", title: s.schedules.name, cell: (one) => <Link to={`schedules/${encodeURIComponent(one.id)}`} class="strong">{one.name}</Link> },
  { key: "cron", title: s.schedules.runs, isWide: true, cell: (one) => <span title={one.cron}>{describeCron(one.cron)}{one.timezone !== "UTC" && ` (${one.timezone})`}</span> },
  { key: "queue", title: s.columns.queue, cell: (one) => <QueueLink name={one.queue} /> },
  { key: "next", title: s.schedules.next, cell: (one) => (one.paused ? <span class="status paused">{s.queues.statuses.paused}</span> : <Time at={one.next_run ?? one.next_at} />) },
  { key: "last", title: s.schedules.last, rank: 2, cell: (one) => <Time at={one.last_run ?? one.last_fired_at} /> },
  { key: "fired", title: s.schedules.fired, isNumber: true, rank: 2, cell: (one) => whole(one.fired) },
];

export function Schedules() {
  useTitle(s.nav.schedules);
  const result = useQuery<Schedule[]>("schedules", () => get("/schedules"), { everyMs: POLL_MS, tags: ["schedules"] });
  useEvents({ types: ["schedule_fired"] }, () => touch("schedules"));
  return (
    <>
      <Head title={s.nav.schedules} about={s.schedules.about}>
        <CopyAs call={{ method: "GET", path: "/schedules" }} command="schedules list" />
        {may("create_schedule") && (
          <button class="primary" onClick={() => show(<ScheduleDialog />)}>
            <Icon name="plus" /> {s.schedules.create}
          </button>
        )}
      </Head>
      <Loaded result={result}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty icon="calendar" title={s.schedules.empty} hint="corvo schedules create nightly --queue reports --cron '0 3 * * *'" />
          ) : (
            <Table label={s.nav.schedules} rows={rows} columns={COLUMNS} idOf={(one) => one.id} onOpen={(one) => go(hrefOf(`schedules/${one.id}`))} />
          )
        }
      </Loaded>
    </>
  );
}

export function SchedulePage({ name: id }: { name: string }) {
  const result = useQuery<Schedule>(`schedule ${id}`, () => get(PATH(id)), { everyMs: POLL_MS, tags: ["schedules"] });
  useTitle(result.data?.name ?? s.nav.schedules);
  useEvents({ types: ["schedule_fired"] }, () => touch("schedules"));
  return (
    <Loaded result={result}>
      {(one) => (
        <>
          <Head title={one.name} about={`${describeCron(one.cron)} (${one.timezone})`}>
            <CopyAs call={{ method: "GET", path: PATH(id) }} command={`schedules show ${quoted(one.name)}`} />
            <Actions one={one} />
          </Head>
          <div class="grid two">
            <Card title={s.schedules.nextRuns}>
              {one.paused ? (
                <Empty icon="pause" title={s.schedules.isPaused} />
              ) : (
                <ol class="runs">
                  {(one.next_slots ?? []).map((slot) => (
                    <li key={slot}>
                      <Time at={slot} isRelative={false} /> <span class="faint"><Time at={slot} /></span>
                    </li>
                  ))}
                </ol>
              )}
            </Card>
            <Card title={s.job.facts}>
              <dl class="facts">
                {[
                  [s.columns.queue, <QueueLink name={one.queue} />],
                  [s.schedules.cron, <code>{one.cron}</code>],
                  [s.schedules.last, <Time at={one.last_run ?? one.last_fired_at} />],
                  [s.schedules.fired, whole(one.fired)],
                  [s.schedules.catchUp, s.schedules.catchUps[one.catch_up as "all"] ?? one.catch_up],
                  [s.facts.priority, one.priority],
                  [s.schedules.changed, <Time at={one.updated_at} />],
                ].map(([label, value]) => (
                  <div key={String(label)}>
                    <dt>{label}</dt>
                    <dd>{value}</dd>
                  </div>
                ))}
              </dl>
            </Card>
          </div>
          <Json title={s.job.payload} value={one.payload ?? {}} />
        </>
      )}
    </Loaded>
  );
}

function Actions({ one }: { one: Schedule }) {
  const send = (action: string) => async () => {
    await post(PATH(one.id, action));
    refresh();
  };
  return (
    <>
      {may("run_schedule") && <button onClick={() => void attempt(send("/run"), s.schedules.ran)}>{s.schedules.run}</button>}
      {may(one.paused ? "resume_schedule" : "pause_schedule") && (
        <button onClick={() => void attempt(send(one.paused ? "/resume" : "/pause"), one.paused ? s.queues.resumed(one.name) : s.queues.pausedNow(one.name))}>
          {one.paused ? s.queues.resume : s.queues.pause}
        </button>
      )}
      {may("update_schedule") && <button onClick={() => show(<ScheduleDialog from={one} />)}>{s.schedules.edit}</button>}
      {may("delete_schedule") && (
        <button
          class="danger"
          onClick={() =>
            show(
              <Confirm
                title={s.schedules.delete}
                text={s.schedules.deleteText(one.name)}
                submit={s.schedules.delete}
                onConfirm={async () => {
                  await ask({ method: "DELETE", path: PATH(one.id) });
                  go(hrefOf("schedules"));
                  refresh();
                  return s.schedules.deleted;
                }}
              />,
            )
          }
        >
          {s.schedules.delete}
        </button>
      )}
    </>
  );
}

function ScheduleDialog({ from }: { from?: Schedule }) {
  const [cron, setCron] = useState(from?.cron ?? "0 9 * * 1-5");
  const send = async (form: FormData) => {
    const text = (name: string) => String(form.get(name) ?? "").trim();
    const payload: unknown = JSON.parse(text("payload") || "{}");
    const body = { name: text("name"), queue: text("queue"), cron: text("cron"), timezone: text("timezone") || "UTC", payload, catch_up: text("catch_up") };
    await ask(from ? { method: "PUT", path: PATH(from.id), body } : { method: "POST", path: "/schedules", body });
    refresh();
    return from ? s.schedules.saved : s.schedules.created;
  };
  return (
    <FormDialog title={from ? s.schedules.edit : s.schedules.create} submit={s.save} onSubmit={send} isWide>
      <div class="pair">
        <label>
          {s.schedules.name}
          <input name="name" required defaultValue={from?.name ?? ""} autocomplete="off" />
        </label>
        <label>
          {s.columns.queue}
          <input name="queue" required defaultValue={from?.queue ?? ""} autocomplete="off" />
        </label>
        <label>
          {s.schedules.cron}
          <input name="cron" class="mono" required value={cron} onInput={(event) => setCron(event.currentTarget.value)} autocomplete="off" />
          <small role="status">{describeCron(cron)}</small>
        </label>
        <label>
          {s.schedules.zone}
          <input name="timezone" defaultValue={from?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone} autocomplete="off" />
        </label>
        <label>
          {s.schedules.catchUp}
          <select name="catch_up" defaultValue={from?.catch_up ?? "last"}>
            {(["last", "all", "skip"] as const).map((one) => (
              <option key={one} value={one}>
                {s.schedules.catchUps[one]}
              </option>
            ))}
          </select>
        </label>
      </div>
      <label>
        {s.job.payload}
        <textarea name="payload" class="mono" rows={6} spellcheck={false} defaultValue={stringify(from?.payload ?? {})} />
      </label>
    </FormDialog>
  );
}

