"""Workers that wait: the mirror hears of each at once, then now and then, and nothing grows without bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.job import Worker
from shards import presence as presence_module
from shards.presence import TOLD_EVERY_NS, Presence
from tests.support.builders import NOW


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
    assert presence.take_news() == []


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

    assert sorted(worker.id for worker in presence.take_news()) == ["w1", "w3"]
    presence.see("w2", "host", ["mail"])
    assert [worker.id for worker in presence.take_news()] == ["w2"], "forgotten, so it is new"


def test_workers_that_come_and_go_while_no_mirror_listens_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence_module, "WORKERS_MAX", 10)
    presence = Presence(Time())

    for number in range(100):
        presence.see(f"w{number}", "host", ["mail"])

    assert len(presence.take_news()) == 10
    assert len(presence._told) <= 10


_steps = st.tuples(st.sampled_from(["w1", "w2", "w3", "w4", "take"]), st.integers(0, TOLD_EVERY_NS))


@given(st.lists(_steps, max_size=40))
def test_the_mirror_is_told_of_a_worker_seen_now_unless_it_was_told_lately(steps: list[tuple[str, int]]) -> None:
    time = Time()
    told: dict[str, int] = {}
    due: set[str] = set()
    known: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(presence_module, "WORKERS_MAX", 3)
        presence = Presence(time)
        for what, pause in steps:
            time.ns += pause
            if what == "take":
                assert {worker.id for worker in presence.take_news()} == due
                told.update((worker, time.ns) for worker in due)
                due = set()
                continue
            presence.see(what, "host", [])
            known = [*(worker for worker in known if worker != what), what]
            for gone in known[:-3]:
                told.pop(gone, None)
                due.discard(gone)
            known = known[-3:]
            if time.ns - told.get(what, 0) >= TOLD_EVERY_NS:
                due.add(what)
            assert presence.has_news() == bool(due)
