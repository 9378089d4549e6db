"""Jobs in the order in which they fall due, against a plain set."""

from hypothesis import given
from hypothesis import strategies as st

from corvo.state import keys
from corvo.state.due import HORIZON_NS, DueOrder
from corvo.state.kv import MemoryKV, Overlay
from tests.support.builders import MS, NOW, SECOND, job_id


class Filing:
    def __init__(self) -> None:
        self.kv = MemoryKV()
        self.overlay = Overlay(self.kv)
        self.due = DueOrder(self.overlay)

    def add(self, due_at: int, job: str) -> None:
        self.overlay.changes[keys.due(due_at, job)] = b""
        self.due.add(due_at)

    def remove(self, due_at: int, job: str) -> None:
        self.overlay.changes[keys.due(due_at, job)] = None

    def promote(self, now: int, limit: int) -> list[str]:
        """All that `over` names is promoted: its caller's duty."""
        found = self.due.over(now, limit)
        for key, _ in list(self.overlay.scan(keys.due_floor(0), keys.due_floor(now + 1))):
            if keys.due_parts(key)[1] in found:
                self.overlay.changes[key] = None
        return found

    def flush(self) -> None:
        self.kv.write(self.overlay.changes)
        self.overlay.changes = {}

    def restart(self) -> None:
        self.flush()
        self.due = DueOrder(self.overlay)


spans = st.sampled_from((-SECOND, 0, 1, MS, 300 * MS, SECOND, 3 * SECOND))
steps = st.one_of(
    st.tuples(st.just("add"), spans),
    st.tuples(st.just("add"), spans),
    st.tuples(st.just("remove"), st.integers(0, 10)),
    st.tuples(st.just("over"), st.integers(1, 3)),
    st.tuples(st.just("wait"), st.sampled_from((1, MS, SECOND, 4 * SECOND))),
    st.tuples(st.sampled_from(("look", "flush", "restart")), st.none()),
)


@given(st.lists(steps, max_size=40))
def test_what_falls_due_is_what_a_sorted_set_says(script: list) -> None:
    filing, now, naive, born = Filing(), NOW, set(), 0

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
