/** Jobs that wait for a decision: decide with one key, or many at once. */

import { useEvents } from "../api/live";
import { touch } from "../api/query";
import { may } from "../api/session";
import { ACTIONS } from "../model/actions";
import { Head, useTitle } from "../parts/basic";
import { FilterBar, useFilter } from "../parts/filterbar";
import { act } from "../parts/jobactions";
import { fixedTerms, JobList } from "../parts/joblist";
import { s } from "../strings";

const [APPROVE, REJECT] = ["approve", "reject"].map((name) => ACTIONS.find((action) => action.name === name)!);

export function Held() {
  useTitle(s.nav.held);
  const filtered = useFilter(fixedTerms({ state: "held" }));
  useEvents({ types: ["held", "approved", "rejected", "cancelled", "deleted"] }, () => touch("held", "queues"));
  const canDecide = may("approve") && may("reject");
  return (
    <>
      <Head title={s.nav.held} about={canDecide ? s.held.about : s.held.aboutReading} />
      <FilterBar filtered={filtered} states={[]} hidden={["state"]} />
      <JobList
        label={s.nav.held}
        filtered={filtered}
        columns={["id", "queue", "reason", "payload", "priority", "created"]}
        states={["held"]}
        tags={["held"]}
        empty={{ icon: "check", title: s.held.empty }}
        keys={(job) => ({
          ...(may("approve") && APPROVE ? { a: () => act(APPROVE, job) } : {}),
          ...(may("reject") && REJECT ? { r: () => act(REJECT, job) } : {}),
        })}
      />
    </>
  );
}
