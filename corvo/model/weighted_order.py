"""A pseudo-random order by weight. The same seed gives the same order on every replica.

Drawn without replacement: when one queue is empty, the others keep their shares relative to each other.
"""

from collections.abc import Sequence

_MASK = 2**64 - 1


def scrambled(number: int) -> int:
    """64 well-mixed bits (the finisher of splitmix64): consecutive numbers give unrelated results."""
    number = (number + 0x9E3779B97F4A7C15) & _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)


def draw(weights: Sequence[int], seed: int) -> int:
    """An index into the list, chosen with a probability proportional to its weight."""
    point = scrambled(seed) % sum(weights)
    for place, weight in enumerate(weights):
        point -= weight
        if point < 0:
            return place
    raise AssertionError("a point beyond the sum")


def order(weights: Sequence[int], seed: int) -> list[int]:
    """All indexes, in the order in which they are drawn."""
    left = list(range(len(weights)))
    drawn: list[int] = []
    while left:
        seed = scrambled(seed)
        drawn.append(left.pop(draw([weights[place] for place in left], seed)))
    return drawn
