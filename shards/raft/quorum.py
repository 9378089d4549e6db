"""Majorities, and joint majorities (paper section 6: agreement needs a majority of both configurations).

One function answers several questions of a leader: fed with match indices it gives the commit index, fed with
acknowledged read rounds the confirmed round, fed with the times peers were last heard the time since when a
quorum is silent. An empty set of voters agrees to everything: that is what makes a configuration that is
not joint a special case of a joint one.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Collection, Mapping, Sequence

UNBOUNDED = sys.maxsize  # what an empty set of voters agrees to


class VoteCount(enum.Enum):
    PENDING = "pending"  # the voters not heard yet decide
    WON = "won"
    LOST = "lost"  # no answer of the missing voters can change it


def agreed(values: Sequence[int]) -> int:
    """The highest number that a majority of the voters has reached."""
    count = len(values)
    if count == 1:
        return values[0]
    if count == 0:
        return UNBOUNDED
    return sorted(values)[(count - 1) // 2]


def agreed_jointly(incoming: Sequence[int], outgoing: Sequence[int]) -> int:
    """The highest number that majorities of both sets have reached."""
    return min(agreed(incoming), agreed(outgoing))


def tally(voters: Collection[str], votes: Mapping[str, bool]) -> VoteCount:
    """How an election stands among these voters; votes of others are not looked at."""
    needed = len(voters) // 2 + 1
    granted = sum(1 for voter in voters if votes.get(voter) is True)
    refused = sum(1 for voter in voters if votes.get(voter) is False)
    if not voters or granted >= needed:
        return VoteCount.WON
    if len(voters) - refused < needed:
        return VoteCount.LOST
    return VoteCount.PENDING


def tally_jointly(incoming: Collection[str], outgoing: Collection[str], votes: Mapping[str, bool]) -> VoteCount:
    """An election is won when both majorities are, and lost as soon as one of them is."""
    results = (tally(incoming, votes), tally(outgoing, votes))
    if VoteCount.LOST in results:
        return VoteCount.LOST
    if VoteCount.PENDING in results:
        return VoteCount.PENDING
    return VoteCount.WON
