"""The audit log on the screen."""

import msgspec
from rich.console import Group
from rich.text import Text

from corvo.cli.screen.show import columns, cut, json_text, plain, when
from corvo.client.answers import AuditLogsAnswer, AuditLogView

STYLES = {"ok": "green", "refused": "yellow", "denied": "red", "unknown": "magenta"}
CHANGE_CHARS_MAX = 60


class Verified(msgspec.Struct):
    status: str
    records: int
    after: int  # the record before the first
    newest: int
    hash: str
    namespace: str


def audit_logs(answer: AuditLogsAnswer) -> Group:
    grid = columns(">ID", "WHEN", "NAMESPACE", "PRINCIPAL", "FROM", "OUTCOME", ">STATUS", "WHAT", "CHANGE")
    for log in answer.audit_logs:
        grid.add_row(
            str(log.id),
            when(log.created_at),
            plain(log.namespace),
            plain(log.principal or log.key),
            plain(log.address),
            Text(log.outcome, STYLES.get(log.outcome, "")),
            str(log.status_code or ""),
            plain(cut(f"{log.method} {log.path}", 2 * CHANGE_CHARS_MAX)),
            plain(cut(change_of(log), CHANGE_CHARS_MAX)),
        )
    total = f"{answer.total}" if answer.total_is_exact else f"more than {answer.total}"
    return Group(grid, Text(f"{len(answer.audit_logs)} of {total}, read.db is {answer.lag_ms:.0f} ms behind", "dim"))


def change_of(log: AuditLogView) -> str:
    """Settings that differ, as `name: before → after`; of something new, what was asked for."""
    before, after = log.before or {}, log.after or {}
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    if changed and (before or not log.change):
        return ", ".join(f"{name}: {_short(before.get(name))} → {_short(after.get(name))}" for name in changed)
    return json_text(log.change) if log.change else log.code


def _short(value: object) -> str:
    return "-" if value is None else json_text(value)


def verified(found: Verified) -> Text:
    scope = f" of the namespace {found.namespace}; those of others are not in it" if found.namespace else ""
    records = f"{found.records} records after {found.after}{scope}"
    return plain(f"ok: {records}\nnewest: {found.newest}:{found.hash}")
