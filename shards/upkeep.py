"""The leader's timers: when the next one rings, and what to propose when it does.

Time changes the state only through the log: the leader proposes, every replica applies. Nothing here is remembered;
both questions are answered from the state, so a new leader needs no handing over.
"""

from corvo.endpoint import Operation
from corvo.model.limits import RETENTION_MS_DEFAULT
from corvo.ops.schedules.fire_schedules import FireSchedules
from corvo.ops.upkeep.keep_ended import KeepEnded
from corvo.ops.upkeep.promote import Promote
from corvo.ops.upkeep.reclaim import Reclaim
from corvo.ops.upkeep.ring import Ring
from corvo.rules import schedules
from corvo.state.tables import Tables


def upkeep_due(tables: Tables, wall_ns: int, retention_ms: int = RETENTION_MS_DEFAULT) -> list[Operation]:
    """`retention_ms` is the setting of this node."""
    due: list[Operation] = []
    if tables.default_retention_ms != retention_ms:
        due.append(KeepEnded(retention_ms))
    # `next_at` first: it is asked twice in every turn, and nearly always nothing is due.
    if tables.due.next_at <= wall_ns and tables.due.look_ahead(wall_ns) <= wall_ns:
        due.append(Promote())
    if tables.alarms.next_at <= wall_ns and tables.alarms.look_ahead(wall_ns) <= wall_ns:
        due.append(Ring())
    ends_at = tables.leases.next_end(wall_ns)
    if ends_at is not None and ends_at <= wall_ns:
        due.append(Reclaim())
    if tables.schedules.next_at() <= wall_ns and (firings := schedules.due(tables, wall_ns)):
        due.append(FireSchedules(firings))
    return due


def next_upkeep_ns(tables: Tables, wall_ns: int, retention_ms: int = RETENTION_MS_DEFAULT) -> int:
    """The moment of the next timer; a horizon where there is none in sight."""
    if tables.default_retention_ms != retention_ms:
        return wall_ns
    due_at = min(tables.due.look_ahead(wall_ns), tables.alarms.look_ahead(wall_ns), tables.schedules.next_at())
    ends_at = tables.leases.next_end(wall_ns)
    return due_at if ends_at is None else min(due_at, ends_at)
