"""Dependencies: a job is told when a job that it waits for has ended.

`Watch` goes to the shard of the job that is waited for; `Ended` goes back to the shard of the waiting job. A job that
no longer exists counts as deleted. Both errands follow a job that has moved to another shard.

One entry tells a bounded number of waiting jobs; an alarm that is due at once tells the rest.
"""

from itertools import islice

from corvo.model.job import Job
from corvo.model.job_extras import OUTCOME_NAMES, IfLost, JobExtras, Outcome
from corvo.model.lifecycle import SETTLED, State, Verb
from corvo.model.limits import UPKEEP_JOBS_PER_ENTRY
from corvo.model.sharding import shard_of_job
from corvo.model.timestamps import LATEST_NS
from corvo.rules.errands.errand import Errand
from corvo.state import keys
from corvo.state.tables import Tables
from corvo.state.transitions import OUTCOME_OF, change, postpone

WATCHERS_ALARM = "d"  # followed by a job that has ended; the value is its outcome


class Watch(Errand, tag=1):
    job_id: str  # is waited for
    dependent: str

    def run(self, tables: Tables) -> None:
        job = tables.find_job(self.job_id)
        if job is None:
            elsewhere = tables.forwarded_to(self.job_id)
            if elsewhere is not None:
                tables.errands.send(elsewhere, self)
            else:
                tell_dependent(tables, self.dependent, self.job_id, Outcome.DELETED)
        elif job.state in SETTLED:
            tell_dependent(tables, self.dependent, self.job_id, OUTCOME_OF[job.state])
        else:
            job.extras = job.extras or JobExtras()
            job.extras.is_watched = True
            tables.touch(job)
            tables.put(keys.watcher(self.job_id, self.dependent), b"")


class Ended(Errand, tag=2):
    job_id: str  # has ended
    outcome: Outcome
    dependent: str

    def run(self, tables: Tables) -> None:
        job = tables.find_job(self.dependent)
        if job is None:
            elsewhere = tables.forwarded_to(self.dependent)
            if elsewhere is not None:
                tables.errands.send(elsewhere, self)
            return
        extras = job.extras
        if extras is None or self.job_id not in extras.waits_for:
            return  # told before, or another dependency was lost already
        is_waiting = job.state is State.SCHEDULED and job.due_at == LATEST_NS  # it was not run, held or ended
        if is_waiting and self.outcome is not Outcome.COMPLETED and extras.if_lost is not IfLost.RUN:
            _lose(tables, job, extras, self)
            return
        extras.waits_for = tuple(other for other in extras.waits_for if other != self.job_id)
        tables.touch(job)
        if is_waiting and not extras.waits_for:
            _let_run(tables, job, extras.scheduled_at)


def tell_dependent(tables: Tables, dependent: str, job_id: str, outcome: Outcome) -> None:
    tables.errands.send(shard_of_job(dependent, tables.errands.shard_count), Ended(job_id, outcome, dependent))


def tell_watchers(tables: Tables, job_id: str, outcome: Outcome) -> int:
    """Tell the waiting jobs, as far as this entry allows. Returns how many."""
    left = UPKEEP_JOBS_PER_ENTRY - tables.tellings
    prefix = keys.watchers(job_id)
    waiting = tables.overlay.scan(prefix, keys.prefix_end(prefix)) if left > 0 else iter(())
    told = [key for key, _ in islice(waiting, max(left, 0))]
    if len(told) == left or left <= 0:
        tables.alarms.add(tables.now + 1, WATCHERS_ALARM + job_id, b"%c" % outcome)
    tables.tellings += len(told)
    for key in told:
        tables.put(key, None)
        tell_dependent(tables, keys.second_name(key), job_id, outcome)
    return len(told)


def tell_the_rest(tables: Tables, job_id: str, value: bytes) -> int:
    """The alarm of an ended job that too many jobs waited for. If the job runs again, the rest keep waiting."""
    job = tables.find_job(job_id)
    if job is None:
        return max(tell_watchers(tables, job_id, Outcome(value[0])), 1)
    if job.state in SETTLED:
        return max(tell_watchers(tables, job_id, OUTCOME_OF[job.state]), 1)
    job.extras = job.extras or JobExtras()
    job.extras.is_watched = True
    tables.touch(job)
    return 1


def _let_run(tables: Tables, job: Job, not_before: int) -> None:
    if not_before <= tables.now:
        change(tables, job, Verb.PROMOTE)
        job.due_at = 0
        return
    postpone(tables, job, not_before)


def _lose(tables: Tables, job: Job, extras: JobExtras, ended: Ended) -> None:
    extras.waits_for = ()
    job.failed_at = tables.now
    tables.add_note(job, f"job {ended.job_id}, which this one waited for, is {OUTCOME_NAMES[ended.outcome]}")
    change(tables, job, Verb.CANCEL if extras.if_lost is IfLost.CANCEL else Verb.FORSAKE)
