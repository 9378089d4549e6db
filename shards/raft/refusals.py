"""Why a replica declines a request. A refusal changes nothing.

Refused
├── NotLeader               ask `leader_hint`, if there is one
├── Transferring            leadership is being handed over: ask again in a moment
├── TooMuchUncommitted      wait for commitment
├── TransferRefused         the target cannot take over now
└── MembershipRefused       the reason says what to wait for or correct
"""

from __future__ import annotations


class RaftRefusal(Exception):
    """Base of all refusals."""


class NotLeader(RaftRefusal):
    def __init__(self, leader_hint: str | None) -> None:
        super().__init__(f"not the leader; {leader_hint or 'nobody known'} is")
        self.leader_hint = leader_hint


class Transferring(RaftRefusal):
    def __init__(self, target: str) -> None:
        super().__init__(f"leadership is moving to {target}")
        self.target = target


class TooMuchUncommitted(RaftRefusal):
    def __init__(self, uncommitted_bytes: int) -> None:
        super().__init__(f"{uncommitted_bytes} bytes wait for commitment")
        self.uncommitted_bytes = uncommitted_bytes


class TransferRefused(RaftRefusal):
    pass


class MembershipRefused(RaftRefusal):
    pass
