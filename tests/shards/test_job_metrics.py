"""What a shard counts about its jobs: each event once, times of a bounded sample with the weight of all."""

import pytest

from corvo.model.job_extras import JobExtras
from corvo.ops.jobs.hold import Hold
from corvo.ops.jobs.reject import Reject
from corvo.ops.jobs.retry import Retry
from corvo.queries.cluster import JobFigures
from shards import job_metrics
from shards.job_metrics import count_jobs, job_figures
from tests.support.builders import NOW, SECOND, ack, enqueue, fail, fetch, job_id, new_job, promote, ring
from tests.support.machine import Machine


class Counted(Machine):
    """A machine whose entries are counted, one by one, as the replica does."""

    def __init__(self) -> None:
        super().__init__()
        self.figures: JobFigures = job_figures()

    def do(self, operation: object, at: int = NOW) -> None:
        self.one(operation, at=at)  # type: ignore[arg-type]
        count_jobs(self.figures, self.tables)

    def counts(self) -> tuple[int, int, int, int]:
        figures = self.figures
        return figures.enqueued, figures.completed, figures.failed, figures.dead


def test_every_way_of_a_job_is_counted_once() -> None:
    machine = Counted()
    machine.do(enqueue(1, 2, 3, 4))
    machine.do(enqueue(new_job(5, extras=JobExtras(expire_after_ms=1_000))))
    machine.do(fetch(count=3))
    machine.do(ack(1))
    machine.do(fail(2))
    machine.do(fail(3, is_final=True))
    machine.do(Hold(50, job_id(4)))
    machine.do(Reject(51, job_id(4)))
    machine.do(ring(), at=NOW + 2 * SECOND)

    assert machine.counts() == (5, 1, 2, 3)


def test_the_wait_is_from_the_moment_when_the_job_could_be_claimed() -> None:
    machine = Counted()
    machine.do(enqueue(1))
    machine.do(fetch(claim=1), at=NOW + 2 * SECOND)
    machine.do(enqueue(2, scheduled_at=NOW + 100 * SECOND), at=NOW + 2 * SECOND)
    machine.do(promote(), at=NOW + 100 * SECOND)
    machine.do(fetch(claim=2), at=NOW + 103 * SECOND)

    wait = machine.figures.wait_s
    assert (wait.count, wait.total) == (2, pytest.approx(2.0 + 3.0))


def test_a_second_claim_is_no_wait() -> None:
    machine = Counted()
    machine.do(enqueue(1))
    machine.do(fetch(claim=1))
    machine.do(fail(1, is_final=True))
    machine.do(Retry(9, job_id(1)), at=NOW + 500 * SECOND)
    machine.do(fetch(claim=2), at=NOW + 500 * SECOND)
    machine.do(ack(1), at=NOW + 507 * SECOND)

    assert machine.figures.wait_s.count == 1
    assert (machine.figures.run_s.count, machine.figures.run_s.total) == (1, pytest.approx(7.0))


def test_a_large_entry_is_sampled_and_counted_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_metrics, "SAMPLED_PER_ENTRY", 8)
    machine = Counted()
    machine.do(enqueue(*range(1, 101)))
    looked_at = []
    find_job = machine.tables.find_job
    machine.do(fetch(count=99, claim=1), at=NOW + SECOND)
    monkeypatch.setattr(machine.tables, "find_job", lambda name: looked_at.append(name) or find_job(name))
    count_jobs(machine.figures, machine.tables)

    assert len(looked_at) <= 8
    assert (machine.figures.wait_s.count, machine.figures.wait_s.total) == (2 * 99, pytest.approx(2 * 99.0))
