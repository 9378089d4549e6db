"""The checks of the programs that hurt workers: each must be able to fail."""

from chaos import drain_worker, worker_faults
from chaos.worker_process import Line
from corvo.client.answers import JobView


def job(id_: str = "j", state: str = "completed", attempt: int = 0, **more: object) -> JobView:
    return JobView(id_, "q", state, {}, 2, attempt, 3, "exponential", 0, 0, "now", **more)  # type: ignore[arg-type]


def done(id_: str = "j", token: int = 1) -> list[Line]:
    return [Line("begun", id_, token, 0), Line("done", id_, token, 0)]


def test_a_drain_that_keeps_its_promises_has_no_faults() -> None:
    jobs = [job("a"), job("b", "pending", checkpoint={"step": 2}), job("c", "pending")]
    assert drain_worker.checked(jobs, [*done("a"), Line("step", "b", 1, 1), Line("step", "b", 1, 2)]) == []


def test_each_broken_promise_of_a_drain_is_told() -> None:
    checked = drain_worker.checked
    assert "was done and is pending" in checked([job(state="pending")], done())[0]
    assert "was not done and is active" in checked([job(state="active")], [])[0]
    assert "was not done and is completed" in checked([job()], [])[0]
    assert "lost an attempt" in checked([job(state="pending", attempt=1)], [])[0]
    lines = [Line("step", "j", 1, 4)]
    assert "saved step 4" in checked([job(state="pending", checkpoint={"step": 3})], lines)[0]
    assert "ran 2 times" in checked([job()], done() + done())[0]


def test_each_broken_promise_of_a_worker_is_told() -> None:
    checked = worker_faults.checked
    assert checked({"j": 1}, [job(result=2)], done()) == []
    assert "is gone" in checked({"j": 1}, [], [])[0]
    assert "is retrying" in checked({"j": 1}, [job(state="retrying")], [])[0]
    assert "has the result 5, wanted 2" in checked({"j": 1}, [job(result=5)], done())[0]
    assert "no handler did it" in checked({"j": 1}, [job(result=2)], [])[0]
    assert "ran 2 times under lease 1" in checked({"j": 1}, [job(result=2)], done() + done())[0]
    assert checked({"j": 1}, [job(result=2)], done() + done(token=2)) == []
