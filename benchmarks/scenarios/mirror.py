"""Does read.db keep up? Whole lives as fast as a server allows, and the mirror's CPU for each.

While the stream enqueues and completes jobs, the mirror follows; its CPU per life tells how many one core could follow.
Afterwards the scenario measures the time until the mirror has caught up, and compares every job and queue of read.db
with the state of the shards.
"""

from time import monotonic, sleep

from benchmarks.figures import Findings, Goal, value
from benchmarks.load import LoadFailed
from benchmarks.node import Node
from benchmarks.scenario import Scenario, Setup
from benchmarks.scenarios.stream import apart
from chaos.checkers import unlike_rows
from chaos.state import held_by_shards, rows_of, statuses

SHAPE = "50 jobs a frame"
OPERATIONS_A_LIFE = 3
CATCH_UP_S_MAX = 120.0
GOAL_LIVES_PER_S = 15_000


def run(setup: Setup) -> Findings:
    lives_per_s, per_core, behind_s, different = [], [], [], 0
    advance = setup.watch.stage("whole lives, and the mirror behind them", setup.rounds)
    with Node(setup.folder / "node", *setup.flags) as node:
        for _ in range(setup.rounds):
            before = node.reading("mirror").cpu_s
            rate = apart(node.address, SHAPE, setup.round_s) / OPERATIONS_A_LIFE
            behind_s.append(_caught_up_s(node))
            lives_per_s.append(rate)
            per_core.append(rate * setup.round_s / (node.reading("mirror").cpu_s - before))
            advance(1)
        shards = node.settings.shards
        held = held_by_shards(node.folder, shards)
        jobs, queues = (rows_of(node.folder, f"SELECT * FROM {table}") for table in ("jobs", "queues"))
        different = len(unlike_rows(held, jobs, queues))
    if different:
        raise LoadFailed(f"{different} rows of read.db are not what the shards hold")
    goal = Goal(f"≥ {GOAL_LIVES_PER_S:,} a second", least=float(GOAL_LIVES_PER_S))
    return Findings(
        [
            value("whole lives, served", lives_per_s, "lives/s"),
            value("whole lives that one core of the mirror follows", per_core, "lives/s", goal),
            value("behind, when the load ends", behind_s, "s"),
            value("rows unlike the shards' state, afterwards", [float(different)], "", Goal("none", most=1.0)),
        ],
        {"jobs compared": float(len(held.jobs))},
    )


def _caught_up_s(node: Node) -> float:
    started = monotonic()
    while monotonic() < started + CATCH_UP_S_MAX:
        if all(status.mirror_cursor >= status.applied_index for status in statuses(node.folder, node.settings.shards)):
            return monotonic() - started
        sleep(0.05)
    raise LoadFailed(f"the mirror had not caught up after {CATCH_UP_S_MAX:g} s")


SCENARIO = Scenario("mirror", "read.db behind whole lives", run)
