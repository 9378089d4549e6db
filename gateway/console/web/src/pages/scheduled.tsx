/** Jobs that wait for their time: scheduled ones, and those that wait for their next attempt. */

import { useEvents } from "../api/live";
import { touch } from "../api/query";
import { Head, useTitle } from "../parts/basic";
import { FilterBar, useFilter } from "../parts/filterbar";
import { fixedTerms, JobList } from "../parts/joblist";
import { parseTerms, valuesOf } from "../model/filter";
import { place } from "../shell/router";
import { s } from "../strings";

const STATES = ["scheduled", "retrying"] as const;

export function Scheduled() {
  useTitle(s.nav.scheduled);
  const { params } = place.use();
  const chosen = valuesOf(parseTerms(params.get("q") ?? ""), "state");
  const filtered = useFilter(fixedTerms({ ...(chosen.length > 0 ? {} : { state: STATES }), sort: "scheduled_at", order: "asc" }));
  useEvents({ types: ["promoted", "rescheduled", "snoozed", "failed"] }, () => touch("scheduled"));
  return (
    <>
      <Head title={s.nav.scheduled} about={s.scheduled.about} />
      <FilterBar filtered={filtered} states={STATES} hidden={["state", "sort", "order"]} />
      <JobList
        label={s.nav.scheduled}
        filtered={filtered}
        columns={["id", "queue", "state", "due", "attempt", "payload", "error"]}
        states={STATES}
        tags={["scheduled"]}
        empty={{ icon: "clock", title: s.scheduled.empty, hint: "corvo enqueue mail --delay 10m" }}
      />
    </>
  );
}
