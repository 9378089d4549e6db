"""Workers that wait: the mirror hears of each at once, then now and then, and nothing grows without bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.job import Worker
from corvo.queries.job import Await
from corvo.queries.why import Demand, Why, WhyView
from shards.intake import presence as presence_module
from shards.intake.presence import GONE_NS, TOLD_EVERY_NS, Presence
from tests.shards.rig import WAITING, Rig, a_directory
from tests.support.builders import NOW, SECOND, enqueue, fetch, job_id


class Time:
    def __init__(self) -> None:
        self.ns = NOW

    def __call__(self) -> int:
        return self.ns


def test_a_worker_that_begins_to_wait_is_news_once() -> None:
    time = Time()
    presence = Presence(time)

    presence.see("w1", "host", ["mail"])

    assert presence.has_news()
    assert presence.take_news() == [Worker("w1", "host", ["mail"], NOW, NOW)]
    assert not presence.has_news()
    assert presence.take_news() is None


def test_a_worker_that_keeps_waiting_is_news_again_only_after_a_while() -> None:
    time = Time()
    presence = Presence(time)
    presence.see("w1", "host", ["mail"])
    presence.take_news()

    time.ns += TOLD_EVERY_NS - 1
    presence.see("w1", "host", ["mail"])
    assert not presence.has_news()

    time.ns += 1
    presence.see("w1", "other", ["video"])
    assert presence.take_news() == [Worker("w1", "other", ["video"], NOW, NOW + TOLD_EVERY_NS)]


def test_news_that_nobody_took_yet_are_told_as_they_are_when_taken() -> None:
    time = Time()
    presence = Presence(time)
    presence.see("w1", "host", ["mail"])
    time.ns += 5

    presence.see("w1", "host", ["video"])

    assert presence.take_news() == [Worker("w1", "host", ["video"], NOW, NOW + 5)]


def test_past_the_bound_the_worker_seen_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence_module, "WORKERS_MAX", 2)
    time = Time()
    presence = Presence(time)
    for worker in ("w1", "w2", "w1", "w3"):
        time.ns += 1
        presence.see(worker, "host", ["mail"])

    assert sorted(worker.id for worker in presence.take_news() or []) == ["w1", "w3"]
    presence.see("w2", "host", ["mail"])
    assert [worker.id for worker in presence.take_news() or []] == ["w3", "w2"], "forgotten, so it is new"


def test_workers_that_come_and_go_while_no_mirror_listens_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence_module, "WORKERS_MAX", 10)
    presence = Presence(Time())

    for number in range(100):
        presence.see(f"w{number}", "host", ["mail"])

    assert len(presence.take_news() or []) == 10
    assert len(presence._told) <= 10


def test_news_of_one_worker_tell_of_all_that_wait_and_of_none_that_left() -> None:
    time = Time()
    presence = Presence(time)
    for worker in ("left", "waits"):
        presence.see(worker, "host", ["mail"])
    presence.take_news()
    time.ns += GONE_NS
    presence.see("waits", "host", ["mail"])
    time.ns += 1

    presence.see("new", "host", ["mail"])

    assert [worker.id for worker in presence.take_news() or []] == ["waits", "new"]


_steps = st.tuples(st.sampled_from(["w1", "w2", "w3", "w4", "take"]), st.integers(0, TOLD_EVERY_NS))


@given(st.lists(_steps, max_size=40))
def test_whoever_was_seen_since_the_last_telling_and_not_told_lately_makes_news(steps: list[tuple[str, int]]) -> None:
    time = Time()
    presence = Presence(time)
    seen: dict[str, int] = {}
    told: dict[str, int] = {}
    is_due = False
    for what, pause in steps:
        time.ns += pause
        if what != "take":
            presence.see(what, "host", [])
            seen[what] = time.ns
            is_due = is_due or time.ns - told.get(what, 0) >= TOLD_EVERY_NS
        elif is_due:
            there = {worker for worker, at in seen.items() if time.ns - at <= GONE_NS}
            assert {worker.id for worker in presence.take_news() or []} == there
            told, is_due = dict.fromkeys(there, time.ns), False
            seen = {worker: seen[worker] for worker in there}
        assert presence.has_news() == is_due


# When a queue was last asked for


def test_the_last_time_that_a_queue_was_asked_for_is_remembered() -> None:
    presence = Presence(Time())
    presence.forget_asked(1 * SECOND)
    presence.ask(["mail", "sms"], 5 * SECOND)
    presence.ask(["mail"], 7 * SECOND)

    assert presence.demand("mail", 10 * SECOND, False) == Demand(NOW, False, NOW - 3 * SECOND, NOW - 9 * SECOND)
    assert presence.demand("sms", 10 * SECOND, True) == Demand(NOW, True, NOW - 5 * SECOND, NOW - 9 * SECOND)
    assert presence.demand("video", 10 * SECOND, False) == Demand(NOW, False, 0, NOW - 9 * SECOND)


def test_a_new_leader_knows_nothing_of_before() -> None:
    presence = Presence(Time())
    presence.ask(["mail"], 5 * SECOND)

    presence.forget_asked(8 * SECOND)

    assert presence.demand("mail", 10 * SECOND, False) == Demand(NOW, False, 0, NOW - 2 * SECOND)


def test_past_the_bound_the_queues_asked_for_longest_ago_are_forgotten_and_that_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(presence_module, "QUEUES_ASKED_MAX", 4)
    presence = Presence(Time())
    for number in range(1, 6):
        presence.ask([f"q{number}"], number * SECOND)

    known = {f"q{number}": presence.demand(f"q{number}", 6 * SECOND, False) for number in range(1, 6)}

    assert [name for name, demand in known.items() if demand.asked_at] == ["q3", "q4", "q5"]
    assert known["q1"].known_since == NOW - 4 * SECOND, "q2, the youngest that was forgotten, was asked for then"


def test_a_leader_explains_who_asks() -> None:
    with a_directory() as path:
        rig = Rig(path / "shard")

        def reason() -> str:
            view = rig.one(Why(job_id(1)))
            assert isinstance(view, WhyView)
            return f"{view.reason}: {view.message}"

        rig.ask(enqueue(1))
        rig.advance(40 * SECOND)
        assert "NO_WORKER: no worker has asked for the queue mail since this leader took over" in reason()
        assert rig.one(fetch("sms", wait_ms=10_000)) is WAITING
        assert "NO_WORKER" in reason()
        rig.ask(Await(["mail"], "w1", "host", 1_000))
        assert "NEXT" in reason()
        rig.advance(40 * SECOND)
        assert "NO_WORKER: no worker has asked for the queue mail for 40 s" in reason()
        rig.ask(fetch())
        assert "RUNNING: it is running: worker w1" in reason()
        rig.kill()
