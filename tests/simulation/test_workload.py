"""What clients saw is written down as it may have happened, not as it should have."""

from __future__ import annotations

from corvo.ops.jobs.fetch import Claimed
from tests.simulation.linearizability import Answer, Op, is_linearizable
from tests.simulation.workload import Client, Task, ops_of
from tests.support.builders import fetch, job_id

CLAIM = Claimed(job_id(1), "mail", b"{}", 1, 3, 1_000, 1, b"", b"")


def test_what_a_repeated_fetch_finds_may_have_been_claimed_by_a_late_try_of_the_first_one() -> None:
    """The first try was overtaken by the second, which found nothing; then it claimed a job that nobody was told of."""
    client = Client("client1")
    first = Task(client, fetch(claim=7), 7, call=3, tries=2)
    again = Task(client, fetch(claim=7, is_repeated=True), 8, call=20, first=first, tries=1)
    ops = [
        Op("enqueue", job_id(1), 1, 2, 0, "pending"),
        Op("read", job_id(1), 10, 11, 0, ("active", 1)),
        *ops_of(first, Answer(first.ask, 3, 6, [], (4, 0))),
        *ops_of(again, Answer(again.ask, 20, 22, [CLAIM], (9, 0))),
    ]

    assert is_linearizable(ops)
    assert not is_linearizable([*ops, Op("read", job_id(1), 30, 31, 0, ("pending", 0))])
