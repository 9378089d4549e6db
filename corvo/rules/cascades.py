"""Cascades: the effects of a job's end on other jobs. They run once for each end, whatever operation caused it.

A job that ends releases its unique key, reports to its batch, continues its chain and tells the jobs that wait for it.
Batch and chain count only the first end: a job that is run again afterwards no longer concerns them.
"""

from corvo.model.job import Job
from corvo.model.job_extras import Outcome
from corvo.model.lifecycle import SETTLED
from corvo.model.sharding import shard_of_batch
from corvo.rules.chains import advance
from corvo.rules.errands.forget import Forget
from corvo.rules.errands.member_ended import MemberEnded
from corvo.rules.errands.watch import tell_watchers
from corvo.state import locks
from corvo.state.tables import Tables
from corvo.state.transitions import EXPIRE_ALARM


def run_cascades(tables: Tables) -> None:
    """Run all cascades of the last step on this shard, and the cascades of those. Errands for other shards go to the
    outbox."""
    ended, here = tables.ended, tables.errands.here
    while ended or here:
        if ended:
            _end(tables, *ended.popleft())
        else:
            here.popleft().run(tables)


def _end(tables: Tables, job: Job, outcome: Outcome) -> None:
    extras = job.extras
    assert extras is not None
    if outcome is Outcome.DELETED:
        for shard in extras.was_at:
            if shard != tables.errands.shard:
                tables.errands.send(shard, Forget(job.id))
        if job.state in SETTLED:
            return  # it ended before, and others were told then
    else:
        locks.unlock(tables, job)
        if extras.expire_at:
            tables.alarms.remove(extras.expire_at, EXPIRE_ALARM + job.id)
    if not extras.is_told:
        extras.is_told = True
        if extras.batch_id:
            shard = shard_of_batch(extras.batch_id, tables.errands.shard_count)
            tables.errands.send(shard, MemberEnded(extras.batch_id, outcome))
        if extras.chain is not None:
            advance(tables, job, extras.chain, outcome)
    if extras.is_watched:
        extras.is_watched = False
        tell_watchers(tables, job.id, outcome)
