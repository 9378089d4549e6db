import time

from corvo.model.job import Worker
from corvo.model.lifecycle import State
from corvo.model.timestamps import to_rfc3339
from gateway.search import workers
from tests.support.builders import NOW, a_job


def test_a_worker_known_to_several_shards_is_one_worker(written, ask):
    written.put(Worker("w1", "old-host", ["a", "b"], NOW + 1, NOW + 10), shard=0)
    written.put(Worker("w1", "new-host", ["b", "c"], NOW + 2, NOW + 20), shard=1)

    (worker,) = ask(workers.answer)

    assert (worker.hostname, worker.queues) == ("new-host", ["a", "b", "c"])
    assert (worker.started_at, worker.last_heartbeat) == (to_rfc3339(NOW + 1), to_rfc3339(NOW + 20))
    assert not worker.is_waiting


def test_pool_size_and_version_are_the_newest_that_were_said(written, ask):
    written.put(Worker("w1", "", [], NOW, NOW + 10, 8, "1.1"), shard=0)
    written.put(Worker("w1", "", [], NOW, NOW + 20, 0, "1.2"), shard=1)

    (worker,) = ask(workers.answer)

    assert (worker.pool_size, worker.version) == (8, "1.2")


def test_the_newest_worker_comes_first(written, ask):
    written.put(
        Worker("w1", "", [], NOW + 1, NOW + 9),
        Worker("w2", "", [], NOW + 2, NOW + 3),
        Worker("w0", "", [], NOW + 1, NOW),
    )

    assert [worker.id for worker in ask(workers.answer)] == ["w2", "w0", "w1"]


def test_a_worker_that_only_waits_is_listed_as_waiting(written, ask):
    now = time.time_ns()
    written.put(Worker("w1", "h", ["a"], now, now), presence=[Worker("w1", "h", ["a"], now, now + 1)])
    left = Worker("gone", "h", ["b"], NOW, now - workers.WAITING_NS_MAX - 10**9)
    written.put(shard=1, presence=[Worker("w2", "h", ["b"], now - 1, now), left])

    first, second = ask(workers.answer)

    assert (first.id, first.is_waiting, first.last_heartbeat) == ("w1", True, to_rfc3339(now + 1))
    assert (second.id, second.is_waiting, second.queues) == ("w2", True, ["b"])


def test_active_jobs_are_counted_per_worker(written, ask):
    written.put(
        Worker("w1", "", [], NOW, NOW),
        Worker("w2", "", [], NOW - 1, NOW),
        a_job(1, state=State.ACTIVE, worker_id="w1"),
        a_job(2, state=State.ACTIVE, worker_id="w1"),
        a_job(3, state=State.COMPLETED, worker_id="w2"),
    )

    assert [(worker.id, worker.active_jobs) for worker in ask(workers.answer)] == [("w1", 2), ("w2", 0)]
