"""Whether the cores are free."""

import time

from gateway.mirror.contention import Contention


def test_whoever_gets_the_core_it_wants_is_not_crowded() -> None:
    contention = Contention()
    for _ in range(20):
        contention.learn(0.010, 0.010)
    assert not contention.is_crowded


def test_whoever_gets_half_of_it_for_a_while_is_crowded_and_recovers() -> None:
    contention = Contention()
    contention.learn(0.005, 0.010)
    assert not contention.is_crowded, "once is chance"
    for _ in range(10):
        contention.learn(0.005, 0.010)
    assert contention.is_crowded
    for _ in range(10):
        contention.learn(0.010, 0.010)
    assert not contention.is_crowded


def test_what_took_no_time_tells_nothing() -> None:
    contention = Contention()
    for _ in range(50):
        contention.learn(0.0, 0.0)
    assert not contention.is_crowded


def test_time_without_a_core_counts_as_time_that_others_had() -> None:
    contention = Contention()
    for _ in range(20):
        with contention.measured():
            time.sleep(0.001)
    assert contention.is_crowded
