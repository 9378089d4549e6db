"""The parts of a turn. Each does its work in `turn` and says in `next_ns` when it wants the next one.

A loop or replica holds its parts in one list and walks it for both questions. So a part that is called is also asked
when it must be called again.
"""

from collections.abc import Callable
from typing import Protocol


class TurnPart(Protocol):
    def turn(self, now_ns: int) -> None:
        """Do everything that can be done now."""

    def next_ns(self) -> int | None:
        """When `turn` must be called although nothing arrives. A past moment: at once. None: not needed."""


def never() -> int | None:
    """The `next_ns` of a part that only acts on what arrives."""
    return None


class TurnStep:
    """A part made of two functions."""

    __slots__ = ("next_ns", "turn")

    def __init__(self, turn: Callable[[int], None], next_ns: Callable[[], int | None] = never) -> None:
        self.turn = turn
        self.next_ns = next_ns


class TurnList:
    """Parts in the order of their turns; a part itself."""

    def __init__(self, *parts: TurnPart) -> None:
        # Looked up once: a shard walks both lists some ten thousand times a second.
        self._turns = tuple(part.turn for part in parts)
        self._nexts = tuple(part.next_ns for part in parts if part.next_ns is not never)

    def turn(self, now_ns: int) -> None:
        for turn in self._turns:
            turn(now_ns)

    def next_ns(self) -> int | None:
        earliest: int | None = None
        for next_ns in self._nexts:
            moment = next_ns()
            if moment is not None and (earliest is None or moment < earliest):
                earliest = moment
        return earliest
