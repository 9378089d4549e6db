"""MemberEnded: a job of a batch has ended; the batch counts it, and may be finished."""

from corvo.model.job_extras import Outcome
from corvo.rules.batches import find_batch, finish_if_over, put_batch
from corvo.rules.errands.errand import Errand
from corvo.state.tables import Tables


class MemberEnded(Errand, tag=4):
    batch_id: str
    outcome: Outcome

    def run(self, tables: Tables) -> None:
        batch = find_batch(tables, self.batch_id)
        if batch is None or batch.finished_at:
            return  # removed or finished: a member that was run again has ended again
        batch.ended[self.outcome] += 1
        finish_if_over(tables, batch)
        put_batch(tables, batch)
