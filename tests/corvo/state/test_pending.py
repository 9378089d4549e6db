"""The pending order: priority, then first in, first out, whatever the windows hold."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.job import Job, Priority, new_queue
from corvo.model.lifecycle import State
from corvo.state import keys, pending
from corvo.state.kv import MemoryKV, Overlay
from corvo.state.pending import PendingOrder, is_waiting
from tests.support.builders import NOW, a_job, job_id


@pytest.fixture(autouse=True, scope="module")
def tiny_windows() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pending, "WINDOW_JOBS", 2)
        patch.setattr(pending, "WINDOWS_KEPT", 2)
        yield


@dataclass
class Filing:
    """The least that stands around a pending order: a map, jobs and queues with cursors."""

    kv: MemoryKV = field(default_factory=MemoryKV)
    jobs: dict[str, Job] = field(default_factory=dict)
    position: int = 0

    def __post_init__(self) -> None:
        self.overlay = Overlay(self.kv)
        self.order = PendingOrder(self.overlay)
        self.queues = {name: new_queue(name, NOW) for name in ("mail", "mail.slow")}

    def file(self, queue: str, priority: Priority) -> str:
        self.position += 1
        job = a_job(self.position, queue=queue, priority=priority, position=self.position)
        self.jobs[job.id] = job
        self.overlay.changes[keys.pending(queue, priority, job.position, job.id)] = b""
        self.order.add(job)
        return job.id

    def _leave(self, job: Job, state: State) -> None:
        self.overlay.changes[keys.pending(job.queue, job.priority, job.position, job.id)] = None
        job.state = state

    def claim(self, queue: str) -> str | None:
        for priority in Priority:
            while (first := self.order.pop(self.queues[queue], priority)) is not None:
                position, found = first
                if is_waiting(self.jobs[found], position):
                    self.queues[queue].cursors[priority] = position
                    self._leave(self.jobs[found], State.ACTIVE)
                    return found
        return None

    def cancel(self, job: str) -> None:
        self._leave(self.jobs[job], State.CANCELLED)

    def flush(self) -> None:
        self.kv.write(self.overlay.changes)
        self.overlay.changes = {}


queue_and_priority = st.tuples(st.sampled_from(("mail", "mail.slow")), st.sampled_from(Priority))
steps = st.one_of(
    st.tuples(st.just("file"), queue_and_priority),
    st.tuples(st.just("file"), queue_and_priority),
    st.tuples(st.sampled_from(("claim", "look ahead")), st.sampled_from(("mail", "mail.slow"))),
    st.tuples(st.just("cancel"), st.integers(0, 30)),
    st.tuples(st.sampled_from(("flush", "forget")), st.none()),
)


@given(st.lists(steps, max_size=60))
def test_claims_come_by_priority_then_first_in_first_out(script: list) -> None:
    filing = Filing()
    naive: dict[str, list[tuple[Priority, str]]] = {"mail": [], "mail.slow": []}

    for verb, what in script:
        if verb == "file":
            queue, priority = what
            naive[queue].append((priority, filing.file(queue, priority)))
        elif verb == "claim":
            first = min(naive[what], key=lambda item: item[0], default=None)  # the oldest of the most urgent
            assert filing.claim(what) == (first and first[1])
            if first:
                naive[what].remove(first)
        elif verb == "cancel":
            waiting = naive["mail"] + naive["mail.slow"]
            if waiting:
                gone = waiting[what % len(waiting)]
                filing.cancel(gone[1])
                naive[filing.jobs[gone[1]].queue].remove(gone)
        elif verb == "flush":
            filing.flush()
        elif verb == "look ahead":
            filing.order.upcoming(filing.queues[what], 2)
        else:
            filing.order.forget()

    for queue, items in naive.items():
        rest = sorted(items, key=lambda item: item[0])
        assert [filing.claim(queue) for _ in range(len(rest) + 1)] == [*(job for _, job in rest), None]


def test_a_window_never_holds_more_than_its_size() -> None:
    filing = Filing()
    for _ in range(10):
        filing.file("mail", Priority.NORMAL)

    filing.claim("mail")
    for _ in range(5):
        filing.file("mail", Priority.NORMAL)

    assert len(filing.order.upcoming(filing.queues["mail"], 10)) <= 2


def test_no_more_windows_are_kept_than_the_bound() -> None:
    filing = Filing()

    for queue in ("mail", "mail.slow"):
        filing.file(queue, Priority.NORMAL)
        filing.claim(queue)

    assert len(filing.order._windows) <= 2


def test_upcoming_names_the_next_claims_in_order() -> None:
    filing = Filing()
    jobs = [filing.file("mail", Priority.NORMAL) for _ in range(3)]
    filing.claim("mail")

    mail = filing.queues["mail"]
    assert filing.order.upcoming(mail, 0) == []
    assert filing.order.upcoming(mail, 1) == jobs[1:2]
    assert filing.order.upcoming(mail, 10) == jobs[1:3], "a window that would run dry is filled up"
    assert [filing.claim("mail") for _ in range(3)] == [*jobs[1:], None]


def test_an_empty_order_gives_nothing_and_then_what_comes() -> None:
    filing = Filing()

    assert filing.claim("mail") is None
    late = filing.file("mail", Priority.NORMAL)

    assert filing.claim("mail") == late


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (a_job(position=5), True),
        (a_job(position=6), False),  # filed again since
        (a_job(position=5, state=State.CANCELLED), False),
        (None, False),
    ],
)
def test_a_job_waits_only_at_the_position_it_was_filed_at(job: Job | None, expected: bool) -> None:
    assert is_waiting(job, 5) is expected


def test_ids_in_the_order_are_those_that_were_filed() -> None:
    filing = Filing()

    assert filing.file("mail", Priority.HIGH) == job_id(1)
    assert filing.claim("mail") == job_id(1)
