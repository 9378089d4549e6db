"""The leader's timers: when the next one rings, and what to propose when it does.

Time changes the state only through the log: the leader proposes, every replica applies. Nothing here is remembered;
both questions are answered from the state, so a new leader needs no handing over.
"""

import msgspec

from corvo.endpoint import Operation
from corvo.model import audit
from corvo.model.limits import RETENTION_MS_DEFAULT, WORKER_TIMEOUT_MS_DEFAULT
from corvo.ops.schedules.fire_schedules import FireSchedules
from corvo.ops.upkeep.keep_audit import KeepAudit
from corvo.ops.upkeep.keep_ended import KeepEnded
from corvo.ops.upkeep.keep_workers import KeepWorkers
from corvo.ops.upkeep.promote import Promote
from corvo.ops.upkeep.reclaim import Reclaim
from corvo.ops.upkeep.ring import Ring
from corvo.rules import schedules
from corvo.state.audit_log import AuditKept
from corvo.state.tables import Tables


class UpkeepSettings(msgspec.Struct, frozen=True):
    """Of this node. The leader's become part of the state."""

    retention_ms: int = RETENTION_MS_DEFAULT
    worker_timeout_ms: int = WORKER_TIMEOUT_MS_DEFAULT
    audit: AuditKept = AuditKept()  # on shard 0


DEFAULT_SETTINGS = UpkeepSettings()


def upkeep_due(tables: Tables, wall_ns: int, settings: UpkeepSettings = DEFAULT_SETTINGS) -> list[Operation]:
    due: list[Operation] = []
    if tables.default_retention_ms != settings.retention_ms:
        due.append(KeepEnded(settings.retention_ms))
    if tables.worker_timeout_ms != settings.worker_timeout_ms:
        due.append(KeepWorkers(settings.worker_timeout_ms))
    if _is_audit_changed(tables, settings):
        due.append(KeepAudit(settings.audit.retention_ms, settings.audit.records_max))
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


def next_upkeep_ns(tables: Tables, wall_ns: int, settings: UpkeepSettings = DEFAULT_SETTINGS) -> int:
    """The moment of the next timer; a horizon where there is none in sight."""
    if (tables.default_retention_ms, tables.worker_timeout_ms) != (settings.retention_ms, settings.worker_timeout_ms):
        return wall_ns
    if _is_audit_changed(tables, settings):
        return wall_ns
    due_at = min(tables.due.look_ahead(wall_ns), tables.alarms.look_ahead(wall_ns), tables.schedules.next_at())
    ends_at = tables.leases.next_end(wall_ns)
    return due_at if ends_at is None else min(due_at, ends_at)


def _is_audit_changed(tables: Tables, settings: UpkeepSettings) -> bool:
    return tables.errands.shard == audit.SHARD and tables.audit_log.kept != settings.audit
