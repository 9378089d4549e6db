"""Which processes hang: those whose heartbeat has not changed for longer than their limit. Pure.

A silence is counted in looks, and each look adds at most twice the interval between looks. So the time that this
process itself did not run (a paused container, a machine that slept) counts against nobody.
"""

from collections.abc import Mapping

from corvo.runtime.heartbeat import LastBeat

LOOKS_PER_LIMIT = 5
LOOK_S_MAX = 5.0


def look_interval_s(limit_s: float) -> float:
    return min(limit_s / LOOKS_PER_LIMIT, LOOK_S_MAX)


class HangWatch:
    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self._looked_s: float | None = None
        self._seen: dict[str, LastBeat] = {}
        self._silent_s: dict[str, float] = {}

    def look(self, now_s: float, beats: Mapping[str, LastBeat]) -> dict[str, float]:
        """Processes that are silent for too long, and for how many seconds. Each is told once a limit."""
        passed_s = 0.0 if self._looked_s is None else min(now_s - self._looked_s, 2 * self.interval_s)
        silent_s = {
            name: self._silent_s[name] + passed_s if self._seen.get(name) == beat else 0.0
            for name, beat in beats.items()
        }
        hung = {name: span for name, span in silent_s.items() if span > beats[name].limit_ns / 1e9}
        self._looked_s, self._seen = now_s, dict(beats)
        self._silent_s = silent_s | dict.fromkeys(hung, 0.0)
        return hung
