"""Gates of a queue: what its controls let through."""

import pytest

from corvo.model.job import Controls, new_queue
from corvo.model.lifecycle import State
from corvo.state import keys
from corvo.state.claim_limits import NO_LIMIT, Throttles, room
from corvo.state.kv import MemoryKV, Overlay
from tests.support.builders import MS, NOW

CONTROLS = Controls(rate=3, window_ms=1_000)


@pytest.mark.parametrize(
    ("controls", "expected"),
    [
        (None, NO_LIMIT),
        (Controls(retention_ms=(5, 5, 5)), NO_LIMIT),
        (Controls(is_paused=True), 0),
        (Controls(is_draining=True), 0),
        (Controls(is_paused=True, max_concurrency=9), 0),
        (Controls(max_concurrency=9), 7),
        (Controls(max_concurrency=1), 0),
        (Controls(rate=3, window_ms=1_000), 2),
        (Controls(max_concurrency=3, rate=3, window_ms=1_000), 1),
    ],
)
def test_the_narrowest_gate_counts(controls: Controls | None, expected: int) -> None:
    queue = new_queue("mail", NOW)
    queue.counts[State.ACTIVE] = 2
    queue.controls = controls
    throttles = Throttles(Overlay(MemoryKV()).puts.__setitem__)
    throttles.claim("mail", CONTROLS, NOW, 1)

    assert room(queue, throttles, NOW) == expected


def test_a_window_is_read_back_as_it_was() -> None:
    overlay = Overlay(MemoryKV())
    throttles = Throttles(overlay.puts.__setitem__)
    throttles.claim("mail", CONTROLS, NOW, 1)
    throttles.claim("mail", CONTROLS, NOW, 1)
    throttles.claim("a/b", CONTROLS, NOW + MS, 1)
    kv = MemoryKV()
    kv.write(overlay.seal())
    again = Throttles(Overlay(kv).puts.__setitem__)
    again.recall(kv)

    assert again.room("mail", CONTROLS, NOW) == 1
    assert again.room("a/b", CONTROLS, NOW + MS) == 2
    assert again.room("mail", CONTROLS, NOW + 1_000 * MS) == 3
    assert again.room("unknown", CONTROLS, NOW) == 3


def test_what_has_left_the_window_is_forgotten_and_what_is_dropped_too() -> None:
    overlay = Overlay(MemoryKV())
    throttles = Throttles(overlay.puts.__setitem__)
    throttles.claim("mail", CONTROLS, NOW, 1)
    throttles.claim("mail", CONTROLS, NOW + 999 * MS, 1)
    throttles.trim("mail", CONTROLS, NOW + 1_000 * MS)
    assert overlay.puts[keys.claims_at("mail", NOW)] is None

    throttles.drop("mail")
    throttles.drop("mail")
    throttles.trim("mail", CONTROLS, NOW)
    assert set(overlay.puts.values()) == {None}
    assert throttles.room("mail", CONTROLS, NOW) == 3


def test_room_returns_when_enough_claims_have_left() -> None:
    throttles = Throttles(Overlay(MemoryKV()).puts.__setitem__)
    assert throttles.free_at("mail", CONTROLS) == 0
    for number in range(3):
        throttles.claim("mail", CONTROLS, NOW + number * MS, 2)

    assert throttles.free_at("mail", Controls(rate=6, window_ms=1_000)) == NOW + 1_000 * MS
    assert throttles.free_at("mail", Controls(rate=3, window_ms=1_000)) == NOW + 1_001 * MS
    assert throttles.free_at("mail", Controls(rate=1, window_ms=1_000)) == NOW + 1_002 * MS
