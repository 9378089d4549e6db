"""Voters, learners, and the arithmetic of changing them (thesis chapter 4, joint consensus of 4.3).

A `Membership` is a value. Every change of voters passes through a joint phase in which decisions need a
majority of the old voters *and* of the new ones; a change of learners alone needs no such phase, because
no majority moves. A membership entry in the log carries the whole resulting membership, not the difference,
so that a replica that starts from nothing needs no earlier one to understand it.

Departure from the paper: a membership takes effect when its entry is applied, not when it is appended (as in
etcd). This is safe because one change at a time is in the log, the next is refused until the former is
applied, and no replica campaigns over a committed membership entry that it has not applied.
"""

from __future__ import annotations

import enum

import msgspec


class Membership(msgspec.Struct, frozen=True, array_like=True):
    """A configuration of the group. `outgoing` is not empty exactly during the joint phase."""

    config_id: int = 0  # index of the entry that made it; 0 for the one a group is born with
    voters: tuple[str, ...] = ()
    outgoing: tuple[str, ...] = ()  # the former voters, whose majority is needed too while joint
    learners: tuple[str, ...] = ()  # receive the log, count in no majority
    learners_next: tuple[str, ...] = ()  # outgoing voters that become learners when the joint phase ends

    @property
    def is_joint(self) -> bool:
        return bool(self.outgoing)

    def is_voter(self, replica: str) -> bool:
        return replica in self.voters or replica in self.outgoing

    def is_member(self, replica: str) -> bool:
        return self.is_voter(replica) or replica in self.learners

    def is_alone(self, replica: str) -> bool:
        """Whether this replica is the only voter, and so needs no consent but its own disk's."""
        return self.voters == (replica,) and not self.outgoing

    def members(self) -> tuple[str, ...]:
        """Every replica that receives the log, each once, in a fixed order."""
        return tuple(dict.fromkeys(self.voters + self.outgoing + self.learners))


class ChangeKind(enum.IntEnum):
    ADD_LEARNER = 0  # a newcomer, or a voter that is demoted
    PROMOTE = 1  # a learner that has caught up becomes a voter
    REMOVE = 2


class MembershipStep(msgspec.Struct, frozen=True, array_like=True):
    kind: ChangeKind
    replica: str


class MembershipChange(msgspec.Struct, frozen=True, array_like=True):
    """What an operator asks for: all steps happen together or not at all."""

    steps: tuple[MembershipStep, ...]


def add_learner(replica: str) -> MembershipChange:
    return MembershipChange((MembershipStep(ChangeKind.ADD_LEARNER, replica),))


def promote(replica: str) -> MembershipChange:
    return MembershipChange((MembershipStep(ChangeKind.PROMOTE, replica),))


def remove(replica: str) -> MembershipChange:
    return MembershipChange((MembershipStep(ChangeKind.REMOVE, replica),))


class ImpossibleChange(ValueError):
    """The change makes no sense for this membership; the message says why."""


def enter(current: Membership, change: MembershipChange, config_id: int) -> Membership:
    """The membership that begins this change: joint if it moves a voter, final if it moves only learners."""
    if current.is_joint:
        raise ImpossibleChange("the previous change has not left its joint phase")
    if not change.steps:
        raise ImpossibleChange("the change has no steps")
    if len({step.replica for step in change.steps}) != len(change.steps):
        raise ImpossibleChange("the change names a replica twice")

    voters = list(current.voters)
    learners = list(current.learners)
    learners_next: list[str] = []
    for step in change.steps:
        _take(step, current, voters, learners, learners_next)
    if not voters:
        raise ImpossibleChange("the change leaves no voter")

    if set(voters) == set(current.voters):
        return Membership(config_id, current.voters, (), tuple(learners), ())
    return Membership(config_id, tuple(voters), current.voters, tuple(learners), tuple(learners_next))


def leave(current: Membership, config_id: int) -> Membership:
    """The membership that ends the joint phase: the outgoing voters go, demoted ones stay as learners."""
    assert current.is_joint, "only a joint membership can be left"
    return Membership(config_id, current.voters, (), current.learners + current.learners_next, ())


def _take(
    step: MembershipStep, current: Membership, voters: list[str], learners: list[str], learners_next: list[str]
) -> None:
    replica = step.replica
    if not replica:
        raise ImpossibleChange("a replica has no name")
    if step.kind is ChangeKind.ADD_LEARNER:
        if replica in learners:
            raise ImpossibleChange(f"{replica} is a learner already")
        if replica in voters:
            # Its vote still counts in the outgoing majority, so it may not be a learner before the end.
            voters.remove(replica)
            learners_next.append(replica)
        else:
            learners.append(replica)
    elif step.kind is ChangeKind.PROMOTE:
        if replica not in learners:
            # A newcomer with an empty log would cost availability at once (thesis 4.2.1).
            raise ImpossibleChange(f"{replica} is no learner; a newcomer must catch up as a learner first")
        learners.remove(replica)
        voters.append(replica)
    else:
        if replica in learners:
            learners.remove(replica)
        elif replica in voters:
            voters.remove(replica)
        else:
            raise ImpossibleChange(f"{replica} is no member")


def is_consistent(membership: Membership) -> bool:
    """Whether no replica counts twice where it must not; true of every membership made by this module."""
    voters, outgoing = set(membership.voters), set(membership.outgoing)
    learners, learners_next = set(membership.learners), set(membership.learners_next)
    return (
        len(voters) == len(membership.voters)
        and len(outgoing) == len(membership.outgoing)
        and not learners & (voters | outgoing)
        and learners_next <= outgoing - voters
        and not (outgoing and not voters)
    )
