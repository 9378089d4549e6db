"""What the audit log records of a request: which endpoints, which fields of their bodies, which settings. Pure tables.

Every endpoint that changes something is audited, except the work of producers and workers. Of bodies, answers and
settings only the fields listed here are recorded. A field that may hold a payload or a secret is either left out or, in
`hidden`, recorded as present and never by its value. An endpoint that is not listed records nothing of its body.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from msgspec import UNSET

from corvo.endpoint import Endpoint
from corvo.model.access import OPEN, READS, SEE_PAYLOADS, Principal
from corvo.model.api_key_text import hash_of
from corvo.model.audit import Details, bounded, bounded_details, long_text
from corvo.model.namespaces import DEFAULT, SEPARATOR

WORK = frozenset({"jobs:enqueue", "jobs:fetch", "jobs:ack", "jobs:fail", "jobs:heartbeat"})
PAYLOAD_READS = frozenset({"get_job", "bulk_get", "search", "fulltext", "dead", "held"})
WORKER = ("worker",)
ITEMS_SHOWN = 20  # of a list
HIDDEN = "(hidden)"
HIDDEN_CHANGED = "(hidden, changed)"


class Fields(NamedTuple):
    shown: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    inside: Mapping[str, "Fields"] = {}  # fields that are structs themselves


def in_path(asked: Any, parameters: tuple[str, ...]) -> str | None:
    return parameters[0] if parameters else ""


def in_body(field: str) -> "NameOf":
    return lambda asked, parameters: getattr(asked, field)


def by_given_key(asked: Any, parameters: tuple[str, ...]) -> str | None:
    return None if asked.key is None else hash_of(asked.key)


NameOf = Callable[[Any, tuple[str, ...]], str | None]  # (body, parameters of the path) → name; None: not known yet


class SettingsView(NamedTuple):
    """The settings that an endpoint changes, as another endpoint shows them."""

    endpoint: str
    fields: Fields
    name: NameOf = in_path  # empty: there is only one of them
    listed_by: str = ""  # the other endpoint shows a list, and this field has the name
    made_as: str = ""  # the field of the answer that has the name


_REASON = Fields(("reason",))
_SCHEDULE_TERMS = (
    *("name", "queue", "cron", "timezone", "priority", "max_retries"),
    *("unique_key", "unique_period", "catch_up", "catch_up_max"),
)
_SCHEDULE = Fields(_SCHEDULE_TERMS, ("payload", "tags"))
_CALLBACK = Fields(("queue",), ("payload",))
_FILTER = Fields(
    (
        *("queue", "state", "priority", "worker_id", "job_id_prefix", "parent_id", "unique_key", "batch_id"),
        *("chain_id", "has_errors", "attempt_min", "attempt_max", "created_after", "created_before"),
        *("scheduled_after", "scheduled_before", "started_after", "started_before", "completed_after"),
        *("completed_before", "expire_after", "expire_before", "sort", "order", "limit"),
    ),
    ("tags", "payload_contains", "payload_jq", "error_contains", "q"),
)

_RATES = ("read_rps", "read_burst", "write_rps", "write_burst")
_QUOTAS = ("max_jobs", "max_payload_bytes", "max_queues")
_SIGN_ON = (
    *("provider", "oidc_issuer_url", "oidc_client_id", "saml_enabled", "oidc_group_claim"),
    "group_role_mappings",
)

# Endpoint → what is recorded of its body or its query.
BODIES: dict[str, Fields] = {
    "cancel": Fields(("grace",)),
    "hold": _REASON,
    "reject": _REASON,
    "move": Fields(("queue", "reset_attempts", "keep_priority")),
    "change_priority": Fields(("priority",)),
    "reschedule": Fields(("scheduled_at", "delay", "delay_ms")),
    "replay": Fields(("iteration",)),
    "bulk": Fields(
        ("action", "job_ids", "move_to_queue", "priority", "reason", "grace", "dry_run", "is_async"),
        inside={"filter": _FILTER},
    ),
    "create_batch": Fields(
        ("callback_queue", "description"),
        ("callback_payload",),
        {"on_complete": _CALLBACK, "on_success": _CALLBACK, "on_failure": _CALLBACK},
    ),
    "create_schedule": _SCHEDULE,
    "update_schedule": _SCHEDULE,
    "delete_queue": Fields(("confirm", "force")),
    "set_concurrency": Fields(("max",)),
    "set_throttle": Fields(("rate", "window_ms", "period")),
    "set_retention": Fields(("completed", "dead", "cancelled")),
    "set_redaction": Fields(("paths",)),
    "cluster_join": Fields(("node_id", "address", "addr")),
    "cluster_remove": Fields(("node_id",)),
    "cluster_transfer": Fields(("node_id", "shard")),
    "create_key": Fields(("name", "namespace", "role", "queue_scope", "expires_at", "enabled"), ("key",)),
    "update_key": Fields(("name", "enabled", "role", "queue_scope", "expires_at")),
    "rotate_key": Fields(("overlap",), ("key",)),
    "delete_key": Fields(("key_hash",)),
    "bind_role": Fields(("role",)),
    "put_role": Fields(("name", "permissions")),
    "create_namespace": Fields(("name",)),
    "set_namespace_rate_limit": Fields(_RATES),
    "set_namespace_quotas": Fields(_QUOTAS),
    "set_sso_settings": Fields(_SIGN_ON),
    "rebuild_read_db": Fields(("wait",)),
    "rebuild_sqlite": Fields(("wait",)),
    # Reads of payloads
    "get_job": Fields(("reveal",)),
    "bulk_get": Fields(("job_ids",)),
    "search": _FILTER,
    "fulltext": _FILTER,
    "dead": _FILTER,
    "held": _FILTER,
}

_CONTROLS = Fields(("paused", "draining", "max_concurrency", "rate_limit", "rate_window_ms", "retention"))
_QUEUE = SettingsView("get_queue", _CONTROLS)
_SCHEDULE_VIEW = SettingsView("get_schedule", Fields((*_SCHEDULE_TERMS, "paused"), ("payload", "tags")))
_KEY = SettingsView(
    "api_keys",
    Fields(("key_hash", "name", "prefix", "namespace", "role", "roles", "queue_scope", "enabled", "expires_at")),
    listed_by="key_hash",
)
_ROLE = SettingsView("roles", Fields(("name", "permissions")), listed_by="name")
_NAMESPACE = SettingsView("namespaces", Fields(("name", "state", "rate_limit", "quotas")), listed_by="name")
SETTINGS: dict[str, SettingsView] = {
    **dict.fromkeys(("pause_queue", "resume_queue", "drain_queue", "delete_queue"), _QUEUE),
    **dict.fromkeys(("set_concurrency", "set_throttle", "remove_throttle", "set_retention"), _QUEUE),
    **dict.fromkeys(("update_schedule", "delete_schedule", "pause_schedule", "resume_schedule"), _SCHEDULE_VIEW),
    "create_schedule": _SCHEDULE_VIEW._replace(name=in_body("name")),
    "create_key": _KEY._replace(name=by_given_key, made_as="key_hash"),
    "delete_key": _KEY._replace(name=in_body("key_hash")),
    **dict.fromkeys(("update_key", "rotate_key", "revoke_key", "bind_role", "unbind_role"), _KEY),
    "put_role": _ROLE._replace(name=in_body("name")),
    "delete_role": _ROLE,
    "create_namespace": _NAMESPACE._replace(name=in_body("name")),
    "delete_namespace": _NAMESPACE,
    "set_namespace_rate_limit": SettingsView("namespace_rate_limit", Fields(("using_defaults", *_RATES))),
    "set_namespace_quotas": SettingsView("namespace_quotas", Fields(_QUOTAS)),
    "set_redaction": SettingsView("redaction", Fields(("paths",))),
    "set_sso_settings": SettingsView("sso_settings", Fields(_SIGN_ON)),
}

# Ids in an answer, of what the request made.
MADE = ("id", "job_id", "batch_id", "bulk_operation_id", "schedule_id", "key_hash")


def is_change(endpoint: Endpoint) -> bool:
    """Whether the endpoint is audited. A read that takes its question as a body is no change, and what is open to
    everybody would let everybody fill the log."""
    action = endpoint.access.partition(":")[2]
    return endpoint.method != "GET" and endpoint.access != OPEN and endpoint.access not in WORK and action not in READS


def reads_payloads(principal: Principal) -> bool:
    """Whether its reads of payloads are recorded, where that is on: those of people, not those of workers."""
    if principal.kind == "anonymous" or (principal.kind == "key" and principal.roles == WORKER):
        return False
    return principal.may(SEE_PAYLOADS)


def target_of(endpoint: Endpoint, parameters: tuple[str, ...], namespace: str) -> dict[str, str]:
    """The parameters of the path by their names, as the tenant knows them."""
    names = [piece.strip("{}") for piece in endpoint.path.split("/") if piece.startswith("{")]
    is_queue = endpoint.path.startswith("/queues/")
    return {
        "queue" if name == "name" and is_queue else name: bounded(_shown(value, namespace))
        for name, value in zip(names, parameters, strict=True)
    }


def change_of(endpoint: Endpoint, asked: Any, namespace: str) -> Details:
    """What was asked for in the body."""
    if endpoint.body is None:
        return {}
    return bounded_details(_picked(asked, BODIES.get(endpoint.name, Fields()), namespace))


def query_of(endpoint: Endpoint, asked: Any, namespace: str) -> str:
    """What was asked for after the `?`. Where an endpoint takes nothing there, nothing of it is looked at."""
    if endpoint.body is not None or endpoint.query is None:
        return ""
    picked = _picked(asked, BODIES.get(endpoint.name, Fields()), namespace)
    return long_text(urlencode(picked, safe="()/:,"))


def made_by(answer: Any) -> dict[str, str]:
    found = {name: getattr(answer, name, None) for name in MADE}
    return {name: bounded(value) for name, value in found.items() if isinstance(value, str)}


def settings_of(body: Any, fields: Fields, namespace: str) -> Details:
    """All listed fields, also those at their defaults."""
    return bounded_details(_picked(body, fields, namespace, is_whole=True))


def with_hidden_changes(after: Details, views: tuple[Any, Any], fields: Fields) -> Details:
    """A value that is hidden is still seen to have changed."""
    before_view, after_view = views
    if before_view is None or after_view is None:
        return after
    changed = [name for name in fields.hidden if _value(before_view, name) != _value(after_view, name)]
    return after | dict.fromkeys(changed, HIDDEN_CHANGED)


def _value(view: Any, name: str) -> Any:
    return _comparable(getattr(view, name))


def _picked(source: Any, fields: Fields, namespace: str, is_whole: bool = False) -> Details:
    """Unless the whole is wanted, fields at their defaults are left out: the client did not give them."""
    found: Details = {}
    for field in msgspec.structs.fields(type(source)):
        name, value = field.name, getattr(source, field.name)
        if value is UNSET or (not is_whole and _is_default(value, field)):
            continue
        if name in fields.inside:
            found[field.encode_name] = _picked(value, fields.inside[name], namespace)
        elif name in fields.hidden:
            found[field.encode_name] = None if value is None else HIDDEN
        elif name in fields.shown:
            found[field.encode_name] = _plain(msgspec.to_builtins(value), namespace)
    return found


def _is_default(value: Any, field: msgspec.structs.FieldInfo) -> bool:
    if field.required:
        return False
    default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return bool(_comparable(value) == _comparable(default))


def _comparable(value: Any) -> Any:
    """JSON as it was sent is equal only to itself; its bytes can be compared."""
    return bytes(value) if isinstance(value, msgspec.Raw) else value


def _plain(value: Any, namespace: str) -> Any:
    if isinstance(value, str):
        return bounded(_shown(value, namespace))
    if isinstance(value, list | tuple):
        shown = [_plain(item, namespace) for item in value[:ITEMS_SHOWN]]
        return shown if len(value) <= ITEMS_SHOWN else {"count": len(value), "first": shown}
    if isinstance(value, dict):
        return {bounded(str(name)): _plain(item, namespace) for name, item in list(value.items())[:ITEMS_SHOWN]}
    return value


def _shown(name: str, namespace: str) -> str:
    """A name without the namespace of its request."""
    return name if namespace == DEFAULT else name.removeprefix(f"{namespace}{SEPARATOR}")
