"""Identifiers are unique in one minter, sort by age and name their shard."""

from hypothesis import given
from hypothesis import strategies as st

from corvo.model.ids import Minter
from corvo.model.limits import JOB_ID
from tests.support.builders import NOW, Clock

clocks = st.lists(st.integers(NOW - 10, NOW + 10), min_size=1, max_size=30).map(Clock)


@given(clocks, st.integers(0, 2**80))
def test_ids_of_one_minter_are_legal_distinct_and_sorted_whatever_the_clock_does(clock: Clock, entropy: int) -> None:
    mint = Minter(clock, entropy)

    ids = [mint.job_id(3) for _ in range(30)]

    assert all(JOB_ID.fullmatch(one) for one in ids)
    assert ids == sorted(set(ids))
    assert all(one.startswith("s03_job_") for one in ids)


def test_two_minters_never_mint_the_same_id_at_the_same_moment() -> None:
    assert Minter(Clock(), 1).job_id(0) != Minter(Clock(), 2).job_id(0)
    assert Minter(Clock(), 1).claim_id() != Minter(Clock(), 2).claim_id()


@given(clocks, st.integers(0, 2**40 - 1))
def test_claim_ids_of_one_minter_are_distinct_and_fit_63_bits(clock: Clock, entropy: int) -> None:
    mint = Minter(clock, entropy)

    claims = [mint.claim_id() for _ in range(30)]

    assert len(set(claims)) == 30
    assert all(0 < claim < 2**63 for claim in claims)


def test_the_moment_of_minting_can_be_read_in_the_id() -> None:
    assert int(Minter(Clock([NOW]), 0xFF).job_id(0)[8:24], 16) == NOW


def test_job_ids_and_claim_ids_share_one_clock_so_that_a_mixture_stays_distinct() -> None:
    mint = Minter(Clock(), 0)

    first, _, second = mint.job_id(0), mint.claim_id(), mint.job_id(0)

    assert int(second[8:24], 16) - int(first[8:24], 16) == 2
