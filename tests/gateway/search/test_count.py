"""How many jobs match a filter: all of them, or at least so many."""

from corvo.model.lifecycle import State
from corvo.queries.search import SearchBody
from gateway.search import search
from gateway.search.database import OutOfTime, ReadSession
from tests.support.builders import a_job


def test_a_count_goes_beyond_the_total_of_a_page(written, ask):
    written.put(*(a_job(number, state=State.DEAD if number % 2 else State.HELD) for number in range(10)))

    assert ask(search.count, SearchBody()) == (10, True)
    assert ask(search.count, SearchBody(state=["dead"])) == (5, True)
    assert ask(search.count, SearchBody(queue="other")) == (0, True)


def test_a_count_that_goes_too_far_says_that_there_are_more(written, ask, monkeypatch):
    monkeypatch.setattr(search, "COUNTED_MAX", 6)
    written.put(*(a_job(number) for number in range(10)))

    assert ask(search.count, SearchBody()) == (6, False)


def test_a_count_out_of_time_falls_back_to_the_total_of_a_page(written, ask, monkeypatch):
    budget = ReadSession.budget

    def impatient(session, budget_ms):
        if budget_ms == search.COUNT_ALL_BUDGET_MS:
            raise OutOfTime
        return budget(session, budget_ms)

    monkeypatch.setattr(ReadSession, "budget", impatient)
    written.put(*(a_job(number) for number in range(10)))

    assert ask(search.count, SearchBody()) == (10, True)
