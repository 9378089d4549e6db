/** Dead jobs: first grouped by their error, so that one decision covers them all. */

import { get } from "../api/client";
import { useEvents } from "../api/live";
import { touch, useQuery } from "../api/query";
import { may } from "../api/session";
import type { ErrorGroup, ErrorGroupsAnswer } from "../api/types";
import { ACTIONS } from "../model/actions";
import { formatTerms, parseTerms, toFilter, valuesOf } from "../model/filter";
import { whole } from "../model/format";
import { Card, CopyAs, Head, Time, useTitle } from "../parts/basic";
import { BulkDialog } from "../parts/bulkbar";
import { show } from "../parts/dialog";
import { FilterBar, useFilter } from "../parts/filterbar";
import { fixedTerms, JobList } from "../parts/joblist";
import { JobLink, place, QueueLink, setParams } from "../shell/router";
import { s } from "../strings";

const POLL_MS = 10_000;
const RETRY = ACTIONS.find((action) => action.name === "retry")!;
const LONGEST_PART = 60;

/** The part of a message that jobs of its group share: the longest run between the places that differ. */
export function sharedPart(group: ErrorGroup): string {
  const parts = group.message.split(/<[^>]*>|\*|…|\?/).map((part) => part.trim());
  const found = parts.filter((part) => part !== "" && group.sample_error.includes(part));
  return (found.sort((one, other) => other.length - one.length)[0] ?? group.sample_error).slice(0, LONGEST_PART);
}

export function Dead() {
  useTitle(s.nav.dead);
  const filtered = useFilter(fixedTerms({ state: "dead" }));
  const queue = valuesOf(filtered.terms, "queue")[0] ?? "";
  const groups = useQuery<ErrorGroupsAnswer>(may("error_groups") ? `errors ${queue}` : null, () => get("/errors/groups", { queue, limit: 6 }), {
    everyMs: POLL_MS,
    tags: ["dead"],
  });
  useEvents({ types: ["dead", "retried", "requeued", "deleted"] }, () => touch("dead", "queues"));
  return (
    <>
      <Head title={s.nav.dead} about={s.dead.about}>
        <CopyAs call={{ method: "GET", path: "/errors/groups" }} command="errors" />
        {may("bulk", "retry") && filtered.filter && (
          <button
            class="primary"
            onClick={() =>
              show(<BulkDialog action={RETRY} target={{ kind: "filter", filter: filtered.filter!, terms: filtered.terms }} onDone={() => undefined} />)
            }
          >
            {s.dead.retryAll}
          </button>
        )}
      </Head>
      {groups.data && groups.data.groups.length > 0 && <Groups groups={groups.data.groups} />}
      <FilterBar filtered={filtered} states={[]} hidden={["state"]} />
      <JobList
        label={s.nav.dead}
        filtered={filtered}
        columns={["id", "queue", "attempt", "error", "payload", "failed"]}
        states={["dead"]}
        tags={["dead"]}
        empty={{ icon: "check", title: s.dead.empty }}
      />
    </>
  );
}

function Groups({ groups }: { groups: readonly ErrorGroup[] }) {
  const { params } = place.use();
  return (
    <Card title={s.dead.groups} side={<span class="faint">{s.dead.groupsAbout}</span>}>
      <ul class="groups-list">
        {groups.map((group) => {
          const q = formatTerms([
            { name: "queue", value: group.queue },
            { name: "error_contains", value: sharedPart(group) },
          ]);
          const isOn = params.get("q") === q;
          return (
            <li key={group.fingerprint + group.queue}>
              <b class="times">{whole(group.count)}×</b>
              <button class="plain message" aria-pressed={isOn} title={group.sample_error} onClick={() => setParams({ q: isOn ? null : q })}>
                {group.message}
              </button>
              <span class="faint">
                <QueueLink name={group.queue} /> · {s.dead.last} <Time at={group.last_at} /> · {s.dead.since} <Time at={group.first_at} /> ·{" "}
                <JobLink id={group.sample_job_id} />
              </span>
              {may("bulk", "retry") && (
                <button
                  class="quiet"
                  onClick={() => {
                    const terms = [...parseTerms(q), { name: "state", value: "dead" }];
                    show(<BulkDialog action={RETRY} target={{ kind: "filter", filter: toFilter(terms, Date.now()), terms }} onDone={() => undefined} />);
                  }}
                >
                  {s.dead.retryGroup}
                </button>
              )}
            </li>
          );
        })}
      </ul>
    </Card>
  );
}
