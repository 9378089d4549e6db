"""Keys, roles, namespaces and principals on the screen. Text from outside is made harmless, as in `show.py`."""

from collections.abc import Iterable, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from corvo.cli.screen.show import columns, plain, when
from corvo.client.answers import (
    KeyCreated,
    KeyView,
    NamespaceView,
    Permission,
    PrincipalView,
    QuotasView,
    RateLimitAnswer,
    RateLimitView,
    RoleView,
)


def keys(views: Sequence[KeyView]) -> Table:
    grid = columns("NAME", "KEY", "HASH", "NAMESPACE", "ROLES", "QUEUES", "STATE", "EXPIRES", "LAST USED")
    for view in views:
        grid.add_row(
            plain(view.name),
            plain(f"{view.prefix}…" if view.prefix else "-"),
            view.key_hash[:12],
            plain(view.namespace),
            plain(", ".join([view.role, *view.roles])),
            plain(view.queue_scope or "all"),
            Text("enabled", "green") if view.enabled else Text("disabled", "yellow"),
            when(view.expires_at) or "never",
            when(view.last_used_at) or "-",
        )
    return grid


def key_made(made: KeyCreated) -> Group:
    grid = _pairs([("key", made.api_key), ("hash", made.key_hash), ("expires", when(made.expires_at) or "never")])
    return Group(grid, Text("Store the key now: it is not shown again.", "yellow"))


def roles(views: Sequence[RoleView]) -> Table:
    grid = columns("NAME", "KIND", "PERMISSIONS")
    for view in views:
        grid.add_row(plain(view.name), "built in" if view.built_in else "custom", plain(_permissions(view.permissions)))
    return grid


def namespaces(views: Sequence[NamespaceView]) -> Table:
    grid = columns("NAME", "STATE", "CREATED", ">READ/S", ">WRITE/S", ">JOBS", ">PAYLOAD BYTES", ">QUEUES")
    for view in views:
        limit, quota = view.rate_limit or RateLimitView(), view.quotas or QuotasView()
        grid.add_row(
            plain(view.name),
            view.state,
            when(view.created_at) or "-",
            _number(limit.read_rps),
            _number(limit.write_rps),
            _number(quota.max_jobs),
            _number(quota.max_payload_bytes),
            _number(quota.max_queues),
        )
    return grid


def rate_limit(limit: RateLimitAnswer) -> Table:
    names = ("read_rps", "read_burst", "write_rps", "write_burst")
    return _pairs((name, _number(getattr(limit, name), "the server's setting")) for name in names)


def quotas(view: QuotasView) -> Table:
    names = ("max_jobs", "max_payload_bytes", "max_queues")
    return _pairs((name, _number(getattr(view, name), "no limit")) for name in names)


def principal(view: PrincipalView) -> Table:
    return _pairs(
        [
            ("name", view.name),
            ("kind", view.kind),
            ("namespace", view.namespace if view.namespace == view.home else f"{view.namespace} (of {view.home})"),
            ("roles", ", ".join(view.roles)),
            ("permissions", _permissions(view.permissions)),
            ("queues", view.queue_scope or "all"),
            ("cluster admin", "yes" if view.cluster_admin else "no"),
            ("key hash", view.key_hash),
        ]
    )


def _permissions(permissions: Iterable[Permission]) -> str:
    return "  ".join(f"{one.resource}:{','.join(one.actions)}" for one in permissions)


def _number(number: float | None, none: str = "-") -> str:
    return f"{number:g}" if number else none


def _pairs(rows: Iterable[tuple[str, str]]) -> Table:
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        if value:
            grid.add_row(name, plain(value))
    return grid
