"""What falls due, in the order in which it does, against a plain set."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.state import keys
from corvo.state.due import HORIZON_NS, DueOrder
from corvo.state.kv import MemoryKV, Overlay
from tests.support.builders import MS, NOW, SECOND, job_id


class Filing:
    def __init__(self, family: bytes = keys.DUE) -> None:
        self.kv = MemoryKV()
        self.overlay = Overlay(self.kv)
        self.family = family
        self.due = DueOrder(self.overlay, family)

    def add(self, due_at: int, subject: str, value: bytes = b"") -> None:
        self.due.add(due_at, subject, value)
        self.overlay.seal()

    def remove(self, due_at: int, subject: str) -> None:
        self.due.remove(due_at, subject)
        self.overlay.seal()

    def promote(self, now: int, limit: int) -> list[str]:
        """All that `over` names is settled: its caller's duty."""
        found = self.due.over(now, limit)
        for due_at, subject, _ in found:
            self.remove(due_at, subject)
        return [subject for _, subject, _ in found]

    def flush(self) -> None:
        self.kv.write(self.overlay.changes)
        self.overlay.changes = {}

    def restart(self) -> None:
        self.flush()
        self.due = DueOrder(self.overlay, self.family)


spans = st.sampled_from((-SECOND, 0, 1, MS, 300 * MS, SECOND, 3 * SECOND))
steps = st.one_of(
    st.tuples(st.just("add"), spans),
    st.tuples(st.just("add"), spans),
    st.tuples(st.just("remove"), st.integers(0, 10)),
    st.tuples(st.just("over"), st.integers(1, 3)),
    st.tuples(st.just("wait"), st.sampled_from((1, MS, SECOND, 4 * SECOND))),
    st.tuples(st.sampled_from(("look", "flush", "restart")), st.none()),
)


@given(st.sampled_from((keys.DUE, keys.ALARMS)), st.lists(steps, max_size=40))
def test_what_falls_due_is_what_a_sorted_set_says(family: bytes, script: list) -> None:
    filing, now, naive, born = Filing(family), NOW, set(), 0

    for verb, what in script:
        if verb == "add":
            born += 1
            naive.add((now + what, job_id(born)))
            filing.add(now + what, job_id(born))
        elif verb == "remove" and naive:
            gone = sorted(naive)[what % len(naive)]
            naive.remove(gone)
            filing.remove(*gone)
        elif verb == "over":
            expected = sorted(item for item in naive if item[0] <= now)[:what]
            assert filing.promote(now, what) == [job for _, job in expected]
            naive -= set(expected)
        elif verb == "wait":
            now += what
        elif verb == "look":
            first = min((due_at for due_at, _ in naive), default=now + HORIZON_NS + 1)
            found = filing.due.look_ahead(now)
            assert found <= max(first, now + HORIZON_NS), "nothing may fall due unseen"
            assert found <= now if first <= now else found > now, "sleep when and only when nothing is due"
        elif verb == "flush":
            filing.flush()
        elif verb == "restart":
            filing.restart()


def test_a_job_is_due_to_the_nanosecond() -> None:
    filing = Filing()
    filing.add(NOW + 5, job_id(1))

    assert filing.promote(NOW + 4, 10) == []
    assert filing.due.look_ahead(NOW + 4) == NOW + 5
    assert filing.promote(NOW + 5, 10) == [job_id(1)]


def test_jobs_due_at_one_moment_come_by_id() -> None:
    filing = Filing()
    for number in (3, 1, 2):
        filing.add(NOW, job_id(number))

    assert filing.promote(NOW, 10) == [job_id(1), job_id(2), job_id(3)]


def test_looking_ahead_stops_at_the_horizon() -> None:
    filing = Filing()
    filing.restart()
    filing.add(NOW + 10 * HORIZON_NS, job_id(1))

    assert filing.due.look_ahead(NOW) == NOW + HORIZON_NS


def test_a_job_that_falls_due_before_the_known_next_one_is_noticed() -> None:
    filing = Filing()
    filing.add(NOW + 500 * MS, job_id(1))
    assert filing.due.look_ahead(NOW) == NOW + 500 * MS

    filing.add(NOW + 1, job_id(2))

    assert filing.due.look_ahead(NOW) == NOW + 1


def test_an_alarm_comes_with_its_moment_its_subject_and_its_value() -> None:
    filing = Filing(keys.ALARMS)
    filing.add(NOW, "zone", b"what it is for")

    assert filing.due.over(NOW, 10) == [(NOW, "zone", b"what it is for")]


def test_the_two_families_never_see_each_other() -> None:
    overlay = Overlay(MemoryKV())
    jobs, alarms = DueOrder(overlay, keys.DUE), DueOrder(overlay, keys.ALARMS)
    jobs.add(NOW, job_id(1))
    alarms.add(NOW, "e" + job_id(1))

    assert [subject for _, subject, _ in jobs.over(NOW, 10)] == [job_id(1)]
    assert [subject for _, subject, _ in alarms.over(NOW, 10)] == ["e" + job_id(1)]


def test_an_alarm_that_is_set_behind_the_floor_is_found() -> None:
    filing = Filing(keys.ALARMS)
    filing.add(NOW, "a")
    assert filing.promote(NOW + SECOND, 10) == ["a"]

    filing.add(NOW + 1, "b")

    assert filing.due.look_ahead(NOW + SECOND) <= NOW + SECOND
    assert filing.promote(NOW + SECOND, 10) == ["b"]


def test_what_was_removed_before_it_fell_due_is_waded_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    filing = Filing()
    filing.add(NOW + MS, "z1")
    filing.remove(NOW + MS, "z1")
    starts: list[bytes] = []
    scan = Overlay.scan

    def noted(overlay: Overlay, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        starts.append(start)
        return scan(overlay, start, stop)

    monkeypatch.setattr(Overlay, "scan", noted)

    for second in range(3):
        filing.due.look_ahead(NOW + second * HORIZON_NS)

    assert starts == [keys.due_floor(keys.DUE, moment) for moment in (0, NOW + HORIZON_NS, NOW + 2 * HORIZON_NS)]
    filing.add(NOW, "z2")
    assert filing.due.look_ahead(NOW + 2 * HORIZON_NS) == NOW


def test_what_is_put_off_is_found_again() -> None:
    filing = Filing()
    for number in (1, 2, 3):
        filing.add(NOW + number, job_id(number))
    found = filing.due.over(NOW + SECOND, 9)
    filing.remove(*found[0][:2])

    filing.due.put_off(found[1][0])

    assert filing.due.look_ahead(NOW + SECOND) == NOW + 2
    assert filing.promote(NOW + SECOND, 9) == [job_id(2), job_id(3)]
    assert filing.due.look_ahead(NOW + SECOND) > NOW + SECOND
