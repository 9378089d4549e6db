"""MakeMember: create a job that a batch has already counted, on the shard of its queue.

If another job holds its unique or idempotency key, it is not created. The batch is then told that the member is
deleted; otherwise it would wait for ever.
"""

from corvo.model.job_extras import Outcome
from corvo.model.sharding import shard_of_batch
from corvo.rules.errands.errand import Errand
from corvo.rules.errands.member_ended import MemberEnded
from corvo.rules.job_creation import Existing, NewJob, make
from corvo.state.tables import Tables


class MakeMember(Errand, tag=6):
    new: NewJob

    def run(self, tables: Tables) -> None:
        extras = self.new.extras
        assert extras is not None and extras.batch_id, "a member knows its batch"
        if isinstance(make(tables, self.new), Existing):
            home = shard_of_batch(extras.batch_id, tables.errands.shard_count)
            tables.errands.send(home, MemberEnded(extras.batch_id, Outcome.DELETED))
