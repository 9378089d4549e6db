"""When the next attempt is due: four arithmetic functions of the attempt that failed."""

from collections.abc import Callable
from enum import IntEnum
from zlib import crc32


class Backoff(IntEnum):
    """Stored as its number: never renumber."""

    NONE = 0
    FIXED = 1
    LINEAR = 2
    EXPONENTIAL = 3


BACKOFF_NAMES: tuple[str, ...] = tuple(backoff.name.lower() for backoff in Backoff)

# (base delay, number of the failed attempt, from 1) → delay, before the cap. Integers only: replicas must agree.
_DELAY_MS: dict[Backoff, Callable[[int, int], int]] = {
    Backoff.NONE: lambda base_ms, attempt: 0,
    Backoff.FIXED: lambda base_ms, attempt: base_ms,
    Backoff.LINEAR: lambda base_ms, attempt: base_ms * attempt,
    # 2**63 is past every cap: the exponent is cut there so that attempt 1000 does not make a 300-digit number.
    Backoff.EXPONENTIAL: lambda base_ms, attempt: base_ms << min(attempt - 1, 63),
}


def delay_ms(backoff: Backoff, base_ms: int, max_ms: int, attempt: int) -> int:
    return min(_DELAY_MS[backoff](base_ms, attempt), max_ms)


def shortened(delay: int, permille: int, job_id: str, attempt: int) -> int:
    """The delay, shortened by a hash of job and attempt: jobs that failed together do not run again together, and every
    replica computes the same."""
    drawn = crc32(f"{job_id}/{attempt}".encode())
    return delay - (delay * permille * drawn) // (1000 << 32)


def attempts_remaining(max_retries: int, attempt: int) -> int:
    """`max_retries` counts all attempts, and at least one is made: clients rely on this meaning."""
    return max(max(max_retries, 1) - attempt, 0)
