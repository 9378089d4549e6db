"""The results of a benchmark: figures, each with its ratio, its goal and the range of its rounds.

A ratio compares two measurements of the same round, and the median of the rounds is shown: a disturbance affects both
sides of a round, or only one round.
"""

from statistics import median

import msgspec


class Goal(msgspec.Struct, frozen=True):
    """`text` is for people; `least` or `most` bounds the ratio if there is one, else the value."""

    text: str
    least: float | None = None
    most: float | None = None

    def is_met_by(self, number: float) -> bool:
        return (self.least is None or number >= self.least) and (self.most is None or number < self.most)


class Figure(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    value: float
    unit: str
    ratio: float | None = None
    ratio_to: str = ""
    low: float | None = None  # range over the rounds: of the ratio if there is one, else of the value
    high: float | None = None
    goal: Goal | None = None
    is_met: bool | None = None  # None: no goal is set


class Result(msgspec.Struct, frozen=True):
    scenario: str
    title: str
    seconds: float
    figures: list[Figure]
    details: dict[str, float]  # further numbers, to explain the figures
    notes: list[str]


class Findings(msgspec.Struct, frozen=True):
    """The result of a scenario."""

    figures: list[Figure]
    details: dict[str, float] = {}
    notes: list[str] = []


def value(name: str, rounds: list[float], unit: str, goal: Goal | None = None) -> Figure:
    shown = median(rounds)
    return Figure(
        name,
        shown,
        unit,
        low=min(rounds) if len(rounds) > 1 else None,
        high=max(rounds) if len(rounds) > 1 else None,
        goal=goal,
        is_met=None if goal is None else goal.is_met_by(shown),
    )


def compared(
    name: str, rounds: list[float], unit: str, others: list[float], ratio_to: str, goal: Goal | None = None
) -> Figure:
    """`rounds[i]` and `others[i]` were measured in the same round."""
    ratios = [ours / theirs for ours, theirs in zip(rounds, others, strict=True)]
    ratio = median(ratios)
    return Figure(
        name,
        median(rounds),
        unit,
        ratio,
        ratio_to,
        min(ratios),
        max(ratios),
        goal,
        None if goal is None else goal.is_met_by(ratio),
    )
