/** Jobs that match: a table that goes on, keys to walk in it, and one action on many. */

import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { post } from "../api/client";
import { useQuery } from "../api/query";
import { may } from "../api/session";
import type { JobSummary, SearchAnswer } from "../api/types";
import { stringify } from "../model/exact";
import { toFlags, valuesOf, type Filter, type Term } from "../model/filter";
import { whole } from "../model/format";
import { useKeys } from "../shell/keys";
import { go, hrefOf, JobLink, QueueLink, setParams } from "../shell/router";
import { s } from "../strings";
import { CopyAs, Empty, Loaded, State, Time } from "./basic";
import { BulkBar, type Target } from "./bulkbar";
import type { Filtered } from "./filterbar";
import type { IconName } from "./icons";
import { Table, type Column } from "./table";
import { attempt, toast } from "./toast";

const PAGE = 100;
const LOADED_MAX = 20_000;
const POLL_MS = 5_000;

const text = (value: unknown, length = 80): string => {
  const json = stringify(value ?? {}, 0);
  return json.length > length ? `${json.slice(0, length)}…` : json;
};

export const JOB_COLUMNS: Record<string, Column<JobSummary>> = {
  id: { key: "id", title: s.columns.job, cell: (job) => <JobLink id={job.id} /> },
  queue: { key: "queue", title: s.columns.queue, cell: (job) => <QueueLink name={job.queue} /> },
  state: { key: "state", title: s.columns.state, cell: (job) => <State name={job.state} /> },
  attempt: { key: "attempt", title: s.columns.attempt, isNumber: true, rank: 2, cell: (job) => `${job.attempt}/${job.max_retries}` },
  payload: { key: "payload", title: s.columns.payload, isWide: true, rank: 3, cell: (job) => <code title={text(job.payload, 1000)}>{text(job.payload)}</code> },
  error: { key: "error", title: s.columns.error, isWide: true, rank: 2, cell: (job) => <span title={job.last_error ?? ""}>{job.last_error ?? ""}</span> },
  reason: { key: "reason", title: s.columns.reason, isWide: true, cell: (job) => job.hold_reason ?? "" },
  created: { key: "created", title: s.columns.created, rank: 2, cell: (job) => <Time at={job.created_at} /> },
  failed: { key: "failed", title: s.columns.failed, cell: (job) => <Time at={job.failed_at} /> },
  due: { key: "due", title: s.columns.due, cell: (job) => <Time at={job.scheduled_at} /> },
  priority: { key: "priority", title: s.columns.priority, rank: 2, cell: (job) => s.priorities[job.priority] ?? "" },
};

interface JobListProps {
  label: string;
  filtered: Filtered;
  columns: readonly string[];
  states: readonly string[]; // that the listed jobs can be in; none: all
  tags?: readonly string[];
  empty: { icon: IconName; title: string; hint?: string };
  keys?: (job: JobSummary) => Record<string, () => void>; // of the row under the cursor
}

export function JobList({ label, filtered, columns, states, tags = [], empty, keys }: JobListProps) {
  const { filter, terms, text: asked } = filtered;
  const body = { ...(filter ?? {}), limit: PAGE };
  const key = filter === null ? null : `search ${JSON.stringify(body)}`;
  const first = useQuery<SearchAnswer>(key, () => post("/jobs/search", body), { everyMs: POLL_MS, tags });
  const [more, setMore] = useState<{ jobs: JobSummary[]; cursor: string | null }>({ jobs: [], cursor: null });
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [isAll, setAll] = useState(false);
  const [cursor, setCursor] = useState(-1);
  const [anchor, setAnchor] = useState<string | null>(null);
  const clear = useCallback(() => (setSelected(new Set<string>()), setAll(false)), []);
  useEffect(() => {
    setMore({ jobs: [], cursor: null });
    clear();
    setCursor(-1);
  }, [key, clear]);
  const rows = useMemo(() => merged(first.data?.jobs ?? [], more.jobs), [first.data, more]);
  const next = more.jobs.length > 0 ? more.cursor : first.data?.has_more ? first.data.cursor : null;
  const loadMore = async () => {
    const page = await post<SearchAnswer>("/jobs/search", { ...body, cursor: next });
    setMore((now) => ({ jobs: [...now.jobs, ...page.jobs], cursor: page.has_more ? page.cursor : null }));
  };
  const canSelect = may("bulk");
  const select = (id: string, isRange: boolean) => {
    setAll(false);
    setSelected((now) => rangeOf(rows, now, id, isRange ? anchor : null));
    setAnchor(id);
  };
  const current = rows[cursor];
  useKeys({
    j: () => setCursor(Math.min(rows.length - 1, cursor + 1)),
    k: () => setCursor(Math.max(0, cursor - 1)),
    ...(current
      ? {
          Enter: () => go(hrefOf(`jobs/${current.id}`)),
          ...(canSelect ? { x: () => select(current.id, false), X: () => select(current.id, true) } : {}),
          ...keys?.(current),
        }
      : {}),
    ...(selected.size > 0 ? { Escape: clear } : {}),
  });
  const shown = columns.map((name) => JOB_COLUMNS[name]!);
  const total = first.data?.total ?? 0;
  const isExact = first.data?.total_is_exact ?? true;
  const chosenStates = isAll
    ? [...new Set([...states, ...valuesOf(terms, "state")])]
    : [...new Set(rows.filter((job) => selected.has(job.id)).map((job) => job.state))];
  const target: Target = isAll && filter ? { kind: "filter", filter, terms } : { kind: "ids", ids: [...selected] };
  if (filter === null) return null;
  return (
    <div class="joblist">
      <Loaded result={first}>
        {(data) => (
          <>
            <div class="summary">
              <span role="status">{s.list.total(whole(total), isExact)}</span>
              <span class="faint">{s.list.took(Math.round(data.duration_ms), Math.round(data.lag_ms))}</span>
              <span class="grow" />
              {rows.length > 0 && <ExportButtons rows={rows} />}
              <CopyAs call={{ method: "POST", path: "/jobs/search", body }} command={`search ${toFlags(terms)}`} />
            </div>
            {selected.size > 0 && canSelect && (
              <>
                <BulkBar target={target} count={isAll ? total : selected.size} isExact={!isAll || isExact} states={chosenStates} onClear={clear} />
                {!isAll && total > selected.size && (
                  <p class="offer">
                    <button class="quiet" onClick={() => setAll(true)}>
                      {s.bulk.takeAll(whole(total), isExact)}
                    </button>
                  </p>
                )}
              </>
            )}
            {rows.length === 0 ? (
              asked ? (
                <Empty icon="search" title={s.list.noMatch}>
                  <button onClick={() => setParams({ q: null })}>{s.filters.clear}</button>
                </Empty>
              ) : (
                <Empty icon={empty.icon} title={empty.title} {...(empty.hint ? { hint: empty.hint } : {})} />
              )
            ) : (
              <Table
                label={label}
                rows={rows}
                columns={shown}
                idOf={(job) => job.id}
                selected={selected}
                {...(canSelect
                  ? {
                      onSelect: select,
                      onSelectAll: (isOn: boolean) => (setAll(false), setSelected(new Set(isOn ? rows.map((job) => job.id) : []))),
                    }
                  : {})}
                onOpen={(job) => go(hrefOf(`jobs/${job.id}`))}
                cursor={cursor}
              />
            )}
            {next !== null && rows.length < LOADED_MAX && (
              <p class="more">
                <button onClick={() => void attempt(loadMore, "")}>{s.list.more}</button>
              </p>
            )}
          </>
        )}
      </Loaded>
    </div>
  );
}

/** The first page is read again and again; the pages behind it stay as they were loaded. */
function merged(first: readonly JobSummary[], more: readonly JobSummary[]): JobSummary[] {
  if (more.length === 0) return [...first];
  const known = new Set(first.map((job) => job.id));
  return [...first, ...more.filter((job) => !known.has(job.id))];
}

function rangeOf(rows: readonly JobSummary[], now: ReadonlySet<string>, id: string, anchor: string | null): ReadonlySet<string> {
  const next = new Set(now);
  const [from, to] = [rows.findIndex((job) => job.id === anchor), rows.findIndex((job) => job.id === id)];
  if (anchor !== null && from >= 0 && to >= 0) {
    for (const job of rows.slice(Math.min(from, to), Math.max(from, to) + 1)) next.add(job.id);
  } else if (!next.delete(id)) {
    next.add(id);
  }
  return next;
}

function ExportButtons({ rows }: { rows: readonly JobSummary[] }) {
  const save = (name: string, type: string, content: string) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
    toast(s.list.saved(rows.length));
  };
  const csv = () => {
    const names = ["id", "queue", "state", "attempt", "max_retries", "created_at", "payload", "last_error"] as const;
    // A leading = + - @ would be a formula in a spreadsheet.
    const cell = (value: unknown) => {
      const plain = typeof value === "string" ? value : stringify(value ?? "", 0);
      return `"${(/^[=+\-@\t\r]/.test(plain) ? `'${plain}` : plain).replaceAll('"', '""')}"`;
    };
    return [names.join(","), ...rows.map((job) => names.map((name) => cell(job[name])).join(","))].join("\r\n");
  };
  return (
    <span class="export">
      <button class="quiet" onClick={() => save("jobs.json", "application/json", stringify(rows))}>
        JSON
      </button>
      <button class="quiet" onClick={() => save("jobs.csv", "text/csv", csv())}>
        CSV
      </button>
    </span>
  );
}

export const fixedTerms = (values: Record<string, string | readonly string[]>): Term[] =>
  Object.entries(values).flatMap(([name, value]) => [value].flat().map((one) => ({ name, value: one as string })));

export type { Filter };
