"""Live leases, against a plain dictionary."""

from hypothesis import given
from hypothesis import strategies as st

from corvo.state.leases import Leases
from tests.support.builders import MS, NOW, SECOND, job_id

ends = st.sampled_from([NOW + tenth * 50 * MS + extra for tenth in range(8) for extra in (-1, 0, 1)])
jobs = st.integers(1, 6).map(job_id)
steps = st.one_of(
    st.tuples(st.just("add"), jobs, ends, st.integers(1, 3)),
    st.tuples(st.just("add"), jobs, ends, st.integers(1, 3)),
    st.tuples(st.just("remove"), jobs),
    st.tuples(st.just("over"), ends, st.integers(1, 4)),
    st.tuples(st.just("next_end"), ends),
)


@given(st.lists(steps, max_size=40))
def test_leases_are_those_of_a_plain_dictionary(script: list) -> None:
    leases, naive = Leases(), {}

    for verb, *what in script:
        if verb == "add":
            job, ends_at, claim = what
            leases.add(job, ends_at, claim)
            naive[job] = (ends_at, claim)
        elif verb == "remove":
            leases.remove(what[0])
            naive.pop(what[0], None)
        elif verb == "over":
            now, limit = what
            over = sorted((ends_at, job) for job, (ends_at, _) in naive.items() if ends_at <= now)
            assert leases.over(now, limit) == [job for _, job in over][:limit]
        else:
            check_next_end(leases, what[0], min((ends_at for ends_at, _ in naive.values()), default=None))
        assert len(leases) == len(naive)

    for claim in (1, 2, 3):
        assert leases.claimed_by(claim) == sorted(job for job, (_, found) in naive.items() if found == claim)


def check_next_end(leases: Leases, now: int, first: int | None) -> None:
    """Exact once the end is near; before that never late, and never so early that a waiting loop would spin."""
    found = leases.next_end(now)
    if first is None or found is None:
        assert found is first is None
    elif first <= now:
        assert found == first
    else:
        assert now < found <= first


def test_a_renewed_lease_has_one_end_the_later() -> None:
    leases = Leases()
    leases.add(job_id(1), NOW, 7)

    leases.add(job_id(1), NOW + SECOND, 7)

    assert leases.over(NOW, 10) == []
    assert leases.over(NOW + SECOND, 10) == [job_id(1)]
    assert len(leases) == 1


def test_a_lease_ends_to_the_nanosecond() -> None:
    leases = Leases()
    leases.add(job_id(1), NOW + 5, 7)

    assert leases.over(NOW + 4, 10) == []
    assert leases.over(NOW + 5, 10) == [job_id(1)]


def test_many_leases_over_at_once_come_oldest_first_in_slices() -> None:
    leases = Leases()
    for number in range(3_000):
        leases.add(job_id(number), NOW + (number % 30) * 90 * MS, 1)
    expected = sorted((NOW + (number % 30) * 90 * MS, job_id(number)) for number in range(3_000))

    assert leases.over(NOW + 10 * SECOND, 500) == [job for _, job in expected][:500]


def test_finished_leases_leave_nothing_behind() -> None:
    leases = Leases()
    for number in range(100):
        leases.add(job_id(number), NOW + number * SECOND, 1)
        leases.remove(job_id(number))

    assert leases.next_end(NOW) is None
    assert not leases._slots
    assert not leases._order
