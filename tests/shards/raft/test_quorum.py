"""Majorities against a second, naive way to find them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from raft_examples import examples

from shards.raft.quorum import UNBOUNDED, VoteCount, agreed, agreed_jointly, tally, tally_jointly

values = st.lists(st.integers(0, 12), max_size=7)
votes = st.dictionaries(st.sampled_from("abcdefgh"), st.booleans())
voters = st.sets(st.sampled_from("abcdefg"), max_size=7)


def naive_agreed(reached: list[int]) -> int:
    """Try every number from above: the first that more than half have reached."""
    for candidate in range(12, -1, -1):
        if sum(value >= candidate for value in reached) * 2 > len(reached):
            return candidate
    return UNBOUNDED


@examples(200)
@given(values)
def test_the_agreed_number_is_reached_by_more_than_half_and_none_higher_is(reached: list[int]) -> None:
    assert agreed(reached) == naive_agreed(reached)


@examples(150)
@given(values, values)
def test_a_joint_agreement_needs_both_majorities(incoming: list[int], outgoing: list[int]) -> None:
    assert agreed_jointly(incoming, outgoing) == min(naive_agreed(incoming), naive_agreed(outgoing))


def naive_tally(electorate: set[str], cast: dict[str, bool]) -> VoteCount:
    """Complete the missing votes in the best and in the worst way."""
    missing = electorate - cast.keys()
    granted = {voter for voter in electorate if cast.get(voter)}
    if not electorate or len(granted) * 2 > len(electorate):
        return VoteCount.WON
    return VoteCount.PENDING if len(granted | missing) * 2 > len(electorate) else VoteCount.LOST


@examples(200)
@given(voters, votes)
def test_an_election_is_decided_when_no_missing_vote_can_change_it(electorate: set[str], cast: dict[str, bool]) -> None:
    assert tally(electorate, cast) is naive_tally(electorate, cast)


@examples(150)
@given(voters, voters, votes)
def test_a_joint_election_is_won_twice_or_lost_once(
    incoming: set[str], outgoing: set[str], cast: dict[str, bool]
) -> None:
    results = {naive_tally(incoming, cast), naive_tally(outgoing, cast)}

    expected = VoteCount.WON
    if VoteCount.PENDING in results:
        expected = VoteCount.PENDING
    if VoteCount.LOST in results:
        expected = VoteCount.LOST

    assert tally_jointly(incoming, outgoing, cast) is expected


def test_votes_of_strangers_do_not_count() -> None:
    assert tally("abc", {"a": True, "x": True, "y": True}) is VoteCount.PENDING


@examples(100)
@given(values, st.integers(0, 6), st.integers(0, 12))
def test_agreement_never_falls_when_one_voter_advances(reached: list[int], position: int, higher: int) -> None:
    before = agreed(reached)
    if position < len(reached):
        reached[position] = max(reached[position], higher)

    assert agreed(reached) >= before
