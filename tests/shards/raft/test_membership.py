"""The arithmetic of members."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raft_examples import examples

from shards.raft.membership import (
    ChangeKind,
    ImpossibleChange,
    Membership,
    MembershipChange,
    MembershipStep,
    add_learner,
    enter,
    is_consistent,
    leave,
    promote,
    remove,
)
from shards.raft.messages import decode_membership, encode_membership

ABC = Membership(3, ("a", "b", "c"), (), ("d",))


def test_adding_a_learner_needs_no_joint_phase() -> None:
    assert enter(ABC, add_learner("e"), 9) == Membership(9, ("a", "b", "c"), (), ("d", "e"))


def test_promoting_enters_and_leaves_a_joint_phase() -> None:
    joint = enter(ABC, promote("d"), 9)

    assert joint == Membership(9, ("a", "b", "c", "d"), ("a", "b", "c"))
    assert leave(joint, 10) == Membership(10, ("a", "b", "c", "d"))


def test_a_demoted_voter_is_a_learner_only_after_the_joint_phase() -> None:
    joint = enter(ABC, add_learner("c"), 9)

    assert joint == Membership(9, ("a", "b"), ("a", "b", "c"), ("d",), ("c",))
    assert leave(joint, 10).learners == ("d", "c")


def test_a_replica_can_be_replaced_in_one_step() -> None:
    change = MembershipChange((MembershipStep(ChangeKind.PROMOTE, "d"), MembershipStep(ChangeKind.REMOVE, "a")))

    assert leave(enter(ABC, change, 9), 10) == Membership(10, ("b", "c", "d"))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (add_learner("d"), "already"),
        (promote("x"), "learner first"),
        (promote("a"), "learner first"),
        (remove("x"), "no member"),
        (add_learner(""), "no name"),
        (MembershipChange(()), "no steps"),
        (MembershipChange(tuple(MembershipStep(ChangeKind.REMOVE, name) for name in "abc")), "no voter"),
        (
            MembershipChange((MembershipStep(ChangeKind.REMOVE, "a"), MembershipStep(ChangeKind.ADD_LEARNER, "a"))),
            "twice",
        ),
    ],
)
def test_an_impossible_change_says_why(change: MembershipChange, reason: str) -> None:
    with pytest.raises(ImpossibleChange, match=reason):
        enter(ABC, change, 9)


def test_nothing_enters_a_joint_phase() -> None:
    joint = enter(ABC, promote("d"), 9)

    with pytest.raises(ImpossibleChange, match="joint"):
        enter(joint, remove("a"), 10)


def test_a_voter_of_either_side_votes_and_a_learner_does_not() -> None:
    joint = Membership(9, ("b",), ("a",), ("d",), ("a",))

    assert [joint.is_voter(name) for name in "abdx"] == [True, True, False, False]
    assert [joint.is_member(name) for name in "abdx"] == [True, True, True, False]
    assert joint.members() == ("b", "a", "d")


def test_alone_means_one_voter_and_no_joint_phase() -> None:
    assert Membership(0, ("a",), (), ("b",)).is_alone("a")
    assert not Membership(0, ("a",), ("a", "b")).is_alone("a")
    assert not Membership(0, ("b",)).is_alone("a")


steps = st.builds(MembershipStep, st.sampled_from(ChangeKind), st.sampled_from("abcdef"))


@examples(150)
@given(st.lists(st.lists(steps, min_size=1, max_size=3), max_size=12))
def test_any_sequence_of_changes_stays_consistent_and_quorums_overlap(changes: list[list[MembershipStep]]) -> None:
    current = Membership(0, ("a", "b", "c"))
    for index, sequence in enumerate(changes, 1):
        try:
            following = enter(current, MembershipChange(tuple(sequence)), index)
        except ImpossibleChange:
            continue
        assert is_consistent(following)
        assert decode_membership(encode_membership(following)) == following
        if following.is_joint:
            assert following.outgoing == current.voters
            following = leave(following, index)
        else:
            assert following.voters == current.voters
        assert is_consistent(following) and not following.learners_next
        assert not set(following.learners) & set(following.voters)
        current = following


@examples(100)
@given(st.lists(steps, min_size=2, max_size=4, unique_by=lambda step: step.replica))
def test_one_joint_change_equals_the_chain_of_its_steps(sequence: list[MembershipStep]) -> None:
    start = Membership(0, ("a", "b", "c"), (), ("d", "e"))
    try:
        together = enter(start, MembershipChange(tuple(sequence)), 1)
    except ImpossibleChange:
        return
    if together.is_joint:
        together = leave(together, 1)
    single = start
    # Removals last, so that the chain never runs out of voters on the way.
    for step in sorted(sequence, key=lambda step: step.kind is not ChangeKind.PROMOTE):
        single = enter(single, MembershipChange((step,)), 1)
        if single.is_joint:
            single = leave(single, 1)

    assert set(single.voters) == set(together.voters) and set(single.learners) == set(together.learners)
