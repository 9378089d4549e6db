import time

import msgspec
import pytest

from corvo.model.errors import Refusal
from corvo.model.job import Worker
from corvo.model.lifecycle import State
from corvo.model.timestamps import to_rfc3339
from gateway.search import worker
from tests.support.builders import NOW, a_job, job_id


def test_a_worker_is_shown_with_the_jobs_that_it_has_longest_running_first(written, ask):
    has = {"state": State.ACTIVE, "worker_id": "w1", "attempt": 2, "lease_expires_at": NOW + 99}
    written.put(
        Worker("w1", "host", ["mail"], NOW, NOW + 1, 8, "1.2"),
        Worker("w2", "host", ["mail"], NOW, NOW + 1),
        a_job(1, started_at=NOW + 2, progress=b'{"done":3}', **has),
        a_job(2, started_at=NOW + 1, queue="sms", **has),
        a_job(3, state=State.COMPLETED, worker_id="w1"),
        a_job(4, state=State.ACTIVE, worker_id="w2"),
    )

    found = ask(worker.answer, "w1")

    assert (found.id, found.hostname, found.queues) == ("w1", "host", ["mail"])
    assert (found.pool_size, found.version) == (8, "1.2")
    assert (found.active_jobs, [job.id for job in found.jobs]) == (2, [job_id(2), job_id(1)])
    assert msgspec.json.decode(msgspec.json.encode(found.jobs[1])) == {
        "id": job_id(1),
        "queue": "mail",
        "attempt": 2,
        "started_at": to_rfc3339(NOW + 2),
        "lease_expires_at": to_rfc3339(NOW + 99),
        "progress": {"done": 3},
    }


def test_a_worker_is_merged_over_its_shards_and_may_only_wait(written, ask):
    now = time.time_ns()
    written.put(Worker("w1", "old", ["a"], NOW, NOW + 1), shard=0)
    written.put(shard=1, presence=[Worker("w1", "new", ["b"], now, now)])

    found = ask(worker.answer, "w1")

    assert (found.hostname, found.queues, found.is_waiting, found.jobs) == ("new", ["a", "b"], True, [])


def test_no_more_jobs_are_shown_than_the_bound_but_all_are_counted(written, ask, monkeypatch):
    monkeypatch.setattr(worker, "JOBS_SHOWN_MAX", 2)
    jobs = [a_job(number, state=State.ACTIVE, worker_id="w1", started_at=NOW + number) for number in (1, 2, 3)]
    written.put(Worker("w1", "", [], NOW, NOW), *jobs)

    found = ask(worker.answer, "w1")

    assert (found.active_jobs, [job.id for job in found.jobs]) == (3, [job_id(1), job_id(2)])


def test_a_worker_that_nobody_has_heard_of_is_refused(written, ask):
    with pytest.raises(Refusal, match="no worker 'w9'") as refused:
        ask(worker.answer, "w9")

    assert refused.value.code == "WORKER_NOT_FOUND"
