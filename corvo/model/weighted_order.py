"""Whose turn it is, drawn by weight and without dice: the same seed gives the same draw on every replica.

Drawn one after the other and without replacement: where one has nothing to give, the shares of the others among
themselves stay as their weights say.
"""

from collections.abc import Sequence

_MASK = 2**64 - 1


def scrambled(number: int) -> int:
    """64 bits in which neighbouring numbers have nothing in common (the finish of splitmix64)."""
    number = (number + 0x9E3779B97F4A7C15) & _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)


def draw(weights: Sequence[int], seed: int) -> int:
    """A place in the list, each with the chance that its weight has among all."""
    point = scrambled(seed) % sum(weights)
    for place, weight in enumerate(weights):
        point -= weight
        if point < 0:
            return place
    raise AssertionError("a point beyond the sum")


def order(weights: Sequence[int], seed: int) -> list[int]:
    """All places, in the order in which they are drawn."""
    left = list(range(len(weights)))
    drawn: list[int] = []
    while left:
        seed = scrambled(seed)
        drawn.append(left.pop(draw([weights[place] for place in left], seed)))
    return drawn
