"""How the property tests here run: the same examples every time, no clock, nothing written to disk."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def examples(count: int) -> settings:
    return settings(
        max_examples=count,
        deadline=None,  # a busy machine is no counter-example
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
