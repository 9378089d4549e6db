"""What a seed asks for: calls of clients and faults, written down before anything runs.

A plan is a list of lines in the order of time. Dropping any of them leaves a plan, which is how a failing seed is
shrunk. Hosts are named by numbers that are resolved when the line's moment has come.
"""

from __future__ import annotations

import random

import msgspec

from tests.simulation.clock import MS, T
from tests.simulation.network import Weather


class Line(msgspec.Struct, frozen=True):
    """One thing that is done to the cluster."""

    at_ns: int
    what: str  # a method of Cluster or Clients: do_{what}
    who: int = 0
    span_ns: int = 0

    def __str__(self) -> str:
        return f"{self.at_ns // MS:>6} ms  {self.what} {self.who} {self.span_ns // MS or ''}".rstrip()


class Plan(msgspec.Struct, frozen=True):
    seed: int
    nodes: int
    weather: Weather
    lease_reads: bool
    drift_ppm: int
    disk_ns: int  # a sync takes up to this long on a good day
    snapshot_timeout_ns: int
    kept_entries: int  # behind the applied index: so few that snapshots really happen
    is_about_snapshots: bool  # the log is compacted at once, and machines are slow
    lines: tuple[Line, ...]


ASKS = ("enqueue", "fetch", "ack", "fail", "beat", "read")
ASK_WEIGHTS = (26, 38, 10, 8, 8, 30)
# What can go wrong, how often in comparison, and for how long.
FAULTS: dict[str, tuple[int, int]] = {
    "crash": (10, 3 * T),
    "crash_leader": (8, 3 * T),
    "power_cut": (2, T),
    "isolate": (5, 4 * T),
    "isolate_leader": (6, 4 * T),
    "cut_one_way": (5, 4 * T),
    "pause": (5, 3 * T),
    "slow_disk": (7, 3 * T),
    "slow_apply": (4, 2 * T),
    "fail_sync": (2, T),
    "jump_wall": (2, 10 * T),
    "stop_at_lease": (2, 3 * T),
    "stop_in_turn": (5, 6 * T),
    "choke": (4, 4 * T),
    "late_appends": (5, 3 * T),
    "transfer": (7, T),
    "add_learner": (4, T),
    "promote": (7, T),
    "remove": (3, T),
    "demote": (1, T),
    "rush_in": (3, T),
    "change_at_election": (3, T),
    "crash_at_install": (3, 2 * T),
    "crash_at_write": (4, 2 * T),
}


def make_plan(seed: int) -> Plan:
    dice = random.Random(seed)
    storm_ns = dice.choice([8, 12, 12, 16]) * T
    weather = Weather(
        loss=dice.choice([0.0, 0.0, 0.02, 0.1, 0.2]),
        repeat=dice.choice([0.0, 0.05, 0.15]),
        slow=dice.choice([0.0, 0.0, 0.03, 0.1]),
        delay_ns=dice.choice([2, 10, 40]) * MS,
        keep=dice.choice([0.0, 0.5, 0.9]),
        stream_loss=dice.choice([0.0, 0.3, 0.7]),
        stream_ns=dice.choice([20 * MS, T // 2, 2 * T]),
    )
    # Not every seed has every fault: what is rare beside others must have seeds of its own.
    kinds = [kind for kind in FAULTS if dice.random() < 0.6]
    is_about_snapshots = seed % 10 == 9
    if is_about_snapshots:
        kinds = ["late_appends"]
    weights = [FAULTS[kind][0] for kind in kinds]
    lines = []
    for _ in range(dice.choice([10, 20, 30]) if kinds else 0):
        kind = dice.choices(kinds, weights)[0]
        at_ns, longest_ns = dice.randrange(T, storm_ns), FAULTS[kind][1]
        lines.append(Line(at_ns, kind, dice.randrange(60), dice.randrange(longest_ns // 20, longest_ns)))
    for _ in range(dice.choice([50, 90, 130])):
        kind = dice.choices(ASKS, ASK_WEIGHTS)[0]
        lines.append(Line(dice.randrange(T, storm_ns), kind, dice.randrange(60), dice.randrange(3 * T)))
    lines.sort(key=lambda line: line.at_ns)
    nodes = dice.choice([3, 3, 5])
    drift_ppm, disk_ns = dice.choice([0, 10_000, 25_000]), dice.choice([2, 20, 100]) * MS
    return Plan(
        seed,
        nodes,
        weather,
        lease_reads=dice.random() < 0.6,
        drift_ppm=drift_ppm,
        disk_ns=disk_ns,
        snapshot_timeout_ns=dice.choice([T, 3 * T]),
        kept_entries=dice.choice([0, 1, 4]) if not is_about_snapshots else 0,
        is_about_snapshots=is_about_snapshots,
        lines=tuple(lines),
    )
