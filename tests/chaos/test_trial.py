"""The last line of a trial: what clients had to do again."""

from collections import Counter

from chaos.trial import retries
from chaos.workload import History


def test_it_says_that_clients_retried_and_why() -> None:
    history = History(refusals=Counter({"NOT_LEADER": 3, "OVERLOADED": 1}), broken_calls=11, longest_trouble_s=0.44)

    assert retries(history) == (
        "clients sent 15 calls again: 11 broke, 4 were refused (NOT_LEADER 3, OVERLOADED 1); the longest took 0.4 s"
    )


def test_it_says_so_when_none_had_to() -> None:
    assert retries(History()) == "no client had to send a call again"
