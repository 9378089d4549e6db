"""The end of `chaos.exactly_once`: a late duplicate is seen, and the last line explains its numbers."""

from typing import Any

from chaos.exactly_once import CALLBACKS, MEMBERS, STEP_QUEUES, STEPS, Ledger, drain, summary


def a_callback(number: int, job_id: str) -> dict[str, Any]:
    counts = {"total": MEMBERS, "completed": MEMBERS}
    return {"queue": CALLBACKS[0], "job_id": job_id, "payload": {"number": number, "batch": counts}}


def a_step(chain: int, step: int, job_id: str) -> dict[str, Any]:
    return {"queue": STEP_QUEUES[step], "job_id": job_id, "payload": {"chain": chain}}


class Time:
    """Passes only in `sleep`. At each moment of `arrivals` a job is noted."""

    def __init__(self, ledger: Ledger, arrivals: list[tuple[float, dict[str, Any]]]) -> None:
        self.now_s = 0.0
        self._ledger = ledger
        self._arrivals = arrivals

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        while self._arrivals and self._arrivals[0][0] <= self.now_s:
            self._ledger.note(self._arrivals.pop(0)[1])


def test_a_duplicate_that_comes_after_everything_else_is_seen() -> None:
    ledger = Ledger()
    ledger.promise(ledger.batches, 1)
    clock = Time(ledger, [(1.0, a_callback(1, "a")), (6.0, a_callback(1, "b"))])

    assert drain(ledger, drain_s=60.0, quiet_s=8.0, quiet_s_max=30.0, clock=clock, sleep=clock.sleep) == []

    assert ledger.faults() == ["batch 1 called back 2 times: a, b"]
    assert clock.now_s >= 6.0 + 8.0


def test_the_quiet_period_is_bounded() -> None:
    ledger = Ledger()
    clock = Time(ledger, [(float(second), a_step(second, 0, str(second))) for second in range(1, 1000)])

    faults = drain(ledger, drain_s=60.0, quiet_s=8.0, quiet_s_max=30.0, clock=clock, sleep=clock.sleep)

    assert faults == ["new jobs still came 30 s after everything expected had come"]
    assert clock.now_s < 40


def test_what_never_comes_is_not_waited_for_without_end() -> None:
    ledger = Ledger()
    ledger.promise(ledger.batches, 1)
    clock = Time(ledger, [])

    assert drain(ledger, drain_s=60.0, quiet_s=8.0, quiet_s_max=30.0, clock=clock, sleep=clock.sleep) == []
    assert ledger.faults() == ["batch 1 never called back"]
    assert clock.now_s < 70


def test_a_job_that_is_fetched_again_is_no_news() -> None:
    ledger = Ledger()
    clock = Time(ledger, [(float(second), a_callback(1, "a")) for second in range(1, 60)])

    assert drain(ledger, drain_s=60.0, quiet_s=8.0, quiet_s_max=30.0, clock=clock, sleep=clock.sleep) == []
    assert clock.now_s < 12


def test_callbacks_of_batches_without_an_answer_are_explained() -> None:
    ledger = Ledger()
    for number in range(3):
        ledger.promise(ledger.batches, number)
        ledger.note(a_callback(number, f"b{number}"))
    ledger.promise(ledger.chains, 7)
    for step in range(STEPS):
        ledger.note(a_step(7, step, f"s{step}"))
    assert summary(ledger, kills=2) == "2 kills; 3 batches and 3 callbacks, 1 chains and 5 steps, 0 slots"

    ledger.note(a_callback(9, "b9"))
    ledger.note(a_step(8, 0, "x"))

    assert summary(ledger, kills=2) == (
        "2 kills; 3 batches and 4 callbacks (1 for requests that broke before their answer and had reached the server),"
        " 1 chains and 6 steps (1 for such requests), 0 slots"
    )
