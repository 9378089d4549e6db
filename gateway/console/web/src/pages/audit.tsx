/** Who changed what: changes, denied requests, and reads of what is confidential. */

import { useState } from "preact/hooks";
import { get } from "../api/client";
import { useQuery } from "../api/query";
import type { AuditLog, AuditLogs } from "../api/types";
import { CopyAs, Empty, Head, Loaded, Time, useSettled, useTitle } from "../parts/basic";
import { Dialog, show } from "../parts/dialog";
import { Json } from "../parts/json";
import { Table, type Column } from "../parts/table";
import { place, setParams } from "../shell/router";
import { attempt } from "../parts/toast";
import { s } from "../strings";

const PAGE = 100;
const POLL_MS = 5_000;

const COLUMNS: readonly Column<AuditLog>[] = [
  { key: "at", title: s.events.at, cell: (one) => <Time at={one.created_at} /> },
  { key: "who", title: s.audit.principal, cell: (one) => <span class="strong">{one.principal || "–"}</span> },
  { key: "outcome", title: s.audit.outcome, cell: (one) => <span class={`status outcome-${one.outcome}`}>{one.outcome}</span> },
  { key: "what", title: s.audit.request, isWide: true, cell: (one) => <code title={one.path}>{`${one.method} ${one.path}`}</code> },
  { key: "status", title: s.audit.status, isNumber: true, cell: (one) => one.status_code },
  { key: "role", title: s.settings.role, rank: 2, cell: (one) => one.role },
  { key: "address", title: s.audit.address, rank: 3, cell: (one) => one.address ?? "" },
  {
    key: "more",
    title: s.audit.details,
    cell: (one) => (
      <button class="quiet" onClick={() => show(<Details of={one} />)}>
        {s.audit.details}
      </button>
    ),
  },
];

const Details = ({ of: one }: { of: AuditLog }) => (
  <Dialog title={`${one.method} ${one.path}`} isWide>
    <Json title={s.audit.record} value={one} />
  </Dialog>
);

export function Audit() {
  useTitle(s.nav.audit);
  const { params } = place.use();
  const wanted = { principal: params.get("principal") ?? "", path_prefix: params.get("path") ?? "", outcome: params.get("outcome") ?? "" };
  const query = useSettled(JSON.stringify(wanted));
  const asked = JSON.parse(query) as typeof wanted;
  const result = useQuery<AuditLogs>(`audit ${query}`, () => get("/audit-logs", { ...asked, limit: PAGE }), { everyMs: POLL_MS });
  const [older, setOlder] = useState<{ of: string; rows: AuditLog[]; hasMore: boolean }>({ of: query, rows: [], hasMore: true });
  const behind = older.of === query ? older.rows : [];
  const rows = [...(result.data?.audit_logs ?? []), ...behind];
  const hasMore = behind.length > 0 ? older.hasMore : (result.data?.has_more ?? false);
  const more = async () => {
    const page = await get<AuditLogs>("/audit-logs", { ...asked, limit: PAGE, before_id: rows[rows.length - 1]?.id ?? 0 });
    setOlder({ of: query, rows: [...behind, ...page.audit_logs], hasMore: page.has_more });
  };
  const field = (name: string, label: string) => (
    <label>
      {label}
      <input value={params.get(name) ?? ""} onInput={(event) => setParams({ [name]: event.currentTarget.value })} autocomplete="off" />
    </label>
  );
  return (
    <>
      <Head title={s.nav.audit} about={s.audit.about}>
        <CopyAs call={{ method: "GET", path: "/audit-logs" }} command="audit list" />
      </Head>
      <div class="filters pair three">
        {field("principal", s.audit.principal)}
        {field("path", s.audit.path)}
        <label>
          {s.audit.outcome}
          <select value={wanted.outcome} onChange={(event) => setParams({ outcome: event.currentTarget.value })}>
            <option value="">{s.audit.all}</option>
            {["ok", "refused", "denied", "unknown"].map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
      </div>
      <Loaded result={result}>
        {() =>
          rows.length === 0 ? (
            <Empty icon="audit" title={s.audit.empty} />
          ) : (
            <>
              <Table label={s.nav.audit} rows={rows} columns={COLUMNS} idOf={(one) => String(one.id)} />
              {hasMore && (
                <p class="more">
                  <button onClick={() => void attempt(more, "")}>{s.list.more}</button>
                </p>
              )}
            </>
          )
        }
      </Loaded>
    </>
  );
}
