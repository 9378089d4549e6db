"""An example of every request and answer, for /docs and OpenAPI.

Bodies are written by hand, because a good example shows what one would really send; answers are made from their types,
with a likely value for each name. A test reads every one of them as the type that it stands for.
"""

import json
from typing import Any

from msgspec import inspect

from corvo.endpoint import Endpoint

JOB = "s01_job_18a1f0c2d3e4f5a60a1b2c3d4e"
BATCH = "s01_batch_18a1f0c2d3e4f5a60a1b2c3d4d"
SCHEDULE = "s02_sched_18a1f0c2d3e4f5a60a1b2c3d4f"
BULK = "bulk_18a1f0c2d3e4f5a60a1b2c3d50"
KEY = "sk_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1Yo7hP"
KEY_HASH = "5f8d2c7a" * 8
AT = "2026-01-31T09:00:00.000000000Z"
LATER = "2026-01-31T09:00:05.000000000Z"

PATHS = {
    "job_id": JOB,
    "name": "emails.send",
    "batch_id": BATCH,
    "schedule_id": "daily-report",
    "bulk_id": BULK,
    "worker_id": "worker-1",
    "key_hash": KEY_HASH,
    "role": "auditor",
    "namespace": "acme",
}
QUERIES = {
    "delete_queue": "confirm=true",
    "fulltext": "q=timeout",
    "cluster_events": "after_seq=0&limit=100",
    "events": "queues=emails.send&types=completed,dead",
    "dead": "queue=emails.send",
}
BODIES: dict[str, Any] = {
    "enqueue": {"queue": "emails.send", "payload": {"to": "user@example.com"}, "priority": "high", "max_retries": 5},
    "enqueue_batch": {
        "jobs": [
            {"queue": "images.resize", "payload": {"image": 1}},
            {"queue": "images.resize", "payload": {"image": 2}},
        ],
        "batch": {"callback_queue": "images.done", "callback_payload": {"album": 42}},
    },
    "fetch": {"queues": ["emails.send"], "worker_id": "worker-1", "hostname": "pod-7", "timeout": 30},
    "fetch_batch": {"queues": ["emails.send", "emails.bulk"], "worker_id": "worker-1", "count": 50},
    "ack_batch": {"acks": [{"job_id": JOB, "lease_token": 1, "result": {"sent": True}}]},
    "ack": {"lease_token": 1, "result": {"sent": True}},
    "fail_batch": {"fails": [{"job_id": JOB, "lease_token": 1, "error": "SMTP timeout"}]},
    "fail": {"lease_token": 1, "error": "SMTP timeout", "backtrace": "send.py:12"},
    "heartbeat": {"jobs": {JOB: {"lease_token": 1, "progress": {"current": 450, "total": 1000}}}},
    "cancel": {"grace": "30s"},
    "hold": {"reason": "the customer has called"},
    "reject": {"reason": "a duplicate order"},
    "move": {"queue": "emails.slow", "reset_attempts": True},
    "change_priority": {"priority": "critical"},
    "reschedule": {"delay": "10m"},
    "replay": {"from": 2},
    "bulk": {"action": "retry", "filter": {"queue": "emails.send", "state": ["dead"], "error_contains": "timeout"}},
    "create_batch": {"on_success": {"queue": "albums.done", "payload": {"album": 42}}, "description": "album 42"},
    "create_schedule": {
        "name": "daily-report",
        "queue": "reports.generate",
        "cron": "0 6 * * *",
        "timezone": "Europe/Berlin",
        "payload": {"kind": "daily"},
    },
    "update_schedule": {"cron": "0 7 * * *"},
    "set_concurrency": {"max": 10},
    "set_throttle": {"rate": 100, "period": "1m"},
    "set_retention": {"completed": "1h", "dead": "forever"},
    "create_key": {"name": "mailer", "role": "worker", "queue_scope": "emails.*", "expires_at": "2027-01-31"},
    "update_key": {"enabled": False},
    "rotate_key": {"overlap": "24h"},
    "delete_key": {"key_hash": KEY_HASH},
    "bind_role": {"role": "auditor"},
    "put_role": {"name": "auditor", "permissions": [{"resource": "jobs", "actions": ["read", "list"]}]},
    "create_namespace": {"name": "acme"},
    "set_namespace_rate_limit": {"read_rps": 500, "read_burst": 1000, "write_rps": 100, "write_burst": 200},
    "set_namespace_quotas": {"max_jobs": 1000000, "max_queues": 100},
    "set_sso_settings": {
        "provider": "oidc",
        "oidc_issuer_url": "https://login.example.com",
        "oidc_client_id": "corvo",
        "group_role_mappings": {"sre": "operator"},
    },
    "bulk_get": {"job_ids": [JOB]},
    "search": {"queue": "emails.send", "state": ["dead"], "payload_jq": '.to == "user@example.com"', "limit": 20},
    "cluster_join": {"node_id": "node-2", "address": "db-2:9400"},
    "cluster_remove": {"node_id": "node-2"},
    "cluster_transfer": {"node_id": "node-2", "shard": 0},
}

# Of a field with this name, where its type takes the value.
_VALUES: dict[str, Any] = {
    "active": 3,
    "affected": 142,
    "applied_index": 1042,
    "at_ns": 1769850000000000000,
    "attempt": 1,
    "attempts_remaining": 2,
    "batch_id": BATCH,
    "bulk_operation_id": BULK,
    "catch_up": "last",
    "code": "WRONG_STATE",
    "commit_index": 1042,
    "cron": "0 6 * * *",
    "duration_ms": 12.4,
    "error": "SMTP timeout",
    "estimated_total": 142000,
    "generation": "g1",
    "hostname": "pod-7",
    "id": JOB,
    "job_id": JOB,
    "job_ids": [JOB],
    "key_hash": KEY_HASH,
    "lag_ms": 12.5,
    "leader_id": "node-1",
    "lease_duration": 60,
    "lease_token": 1,
    "max_retries": 5,
    "message": "4 jobs of its queue are ahead of it",
    "mode": "single",
    "name": "emails.send",
    "namespace": "acme",
    "next": "0:12,1:7",
    "node_id": "node-1",
    "outcome": "failed",
    "payload": {"to": "user@example.com"},
    "priority": "normal",
    "progress_url": f"/api/v1/bulk/{BULK}/progress",
    "queue": "emails.send",
    "queues": ["emails.send"],
    "reason": "AHEAD",
    "result": {"sent": True},
    "retry_backoff": "exponential",
    "retry_base_delay_ms": 5000,
    "retry_max_delay_ms": 600000,
    "role": "leader",
    "server_version": "0.1.0",
    "state": "pending",
    "tags": {"tenant": "acme"},
    "task_id": BULK,
    "timezone": "UTC",
    "total": 3,
    "type": "completed",
    "unique_existing": False,
    "voters": ["node-1"],
    "worker_id": "worker-1",
}
_STATUSES = {
    "AckOutcome": "ok",
    "Acked": "ok",
    "BulkProgress": "running",
    "BulkStarted": "processing",
    "BulkView": "running",
    "Cancelled": "cancelled",
    "ClusterStatus": "healthy",
    "DeletedSchedule": "deleted",
    "Done": "ok",
    "Enqueued": "pending",
    "FailOutcome": "retrying",
    "Failed": "retrying",
    "HeartbeatStatus": "ok",
    "QueueChanged": "ok",
    "QueueCleared": "cleared",
    "QueueDetail": "active",
    "QueueDraining": "draining",
    "QueueView": "active",
    "RebuildView": "ok",
    "Sealed": "sealed",
}
# Of one struct: where the usual value of a name would not fit the rest.
_OWN: dict[str, dict[str, Any]] = {
    "JobView": {"state": "completed", "completed_at": LATER},
    "JobSummary": {"state": "dead", "attempt": 5, "failed_at": LATER, "last_error": "SMTP timeout"},
    "BatchView": {"state": "sealed", "pending": 1, "completed": 2, "succeeded": 2},
    "BulkDone": {"matched": 142, "error_codes": {}, "error_samples": [], "sample": []},
    "BulkView": {"total": 1000, "processed": 400, "affected": 400, "percent": 40.0, "rate": 2000.0, "eta_s": 0.3},
    "BulkProgress": {"total": 1000, "processed": 400, "percent": 40.0, "rate": 2000.0, "eta_s": 0.3},
    "FailedBatch": {"failed": 1},
    "AckedBatch": {"acked": 1},
    "QueueView": {"pending": 12, "completed": 840, "enqueued": 855, "completed_total": 840}
    | dict.fromkeys(("max_concurrency", "rate_limit", "rate_window_ms")),
    "ScheduleView": {"queue": "reports.generate", "payload": {"kind": "daily"}, "catch_up_max": 100, "fired": 31}
    | {"next_slots": [LATER]},
    "ErrorGroup": {"count": 17, "message": "SMTP timeout", "sample_error": "SMTP timeout", "sample_job_id": JOB},
    "ThroughputPoint": {"enqueued": 120, "completed": 118, "failed": 2},
    "WhyView": {"reason": "SCHEDULED", "message": "scheduled for 2026-01-31 09:00:05Z", "state": "scheduled"},
    "EventView": {"seq": 12},
    "AuditLogView": {
        "id": 41,
        "namespace": "default",
        "principal": "ada@example.org",
        "role": "admin",
        "method": "POST",
        "path": "/api/v1/queues/emails.send/concurrency",
        "status_code": 200,
        "outcome": "ok",
        "kind": "person",
        "address": "192.0.2.7",
        "route": "set_concurrency",
        "target": {"queue": "emails.send"},
        "change": {"max": 5},
        "before": {"max_concurrency": None},
        "after": {"max_concurrency": 5},
    },
    "AuditLogsAnswer": {"total": 1, "limit": 100},
    "AuditExportLine": {
        "seq": 41,
        "prev": "5f0c" + 60 * "0",
        "hash": "a94f" + 60 * "0",
        "record": {"seq": 41, "at": AT, "kind": "intent", "namespace": "default", "principal": "ada@example.org"},
    },
    "SearchAnswer": {"total": 1, "cursor": None},
    "RetentionView": {"completed_ms": 604800000, "dead_ms": None, "cancelled_ms": 604800000},
    "ClusterStatus": {"version": "0.1.0", "shards": 4, "fsync": True},
    "ShardView": {"state": "leader", "term": 3, "log_entries": 42, "transfers": []},
    "ReplicaView": {"term": 3, "mode": "", "last_contact_ms": None, "log_entries": 42},
    "MembershipView": {"learners": [], "outgoing": []},
    "GroupView": {"learners": []},
    "NodeView": {"address": "db-1:9400", "is_reachable": True},
    "SqliteMirrorView": {"async": True, "applied": 1042},
    "SqliteRebuildView": {"ran": True, "last_duration_ms": 250.0, "last_success": True},
    "MirrorView": {"rows_total": 1042, "rebuild_ms": 250.0},
    "RebuildView": {"rebuilt": True},
    "HistogramView": {"count": 2, "avg": 0.0004, "p50": 0.0003, "p90": 0.0005, "p99": 0.0005},
    "BucketView": {"le": 0.0005, "count": 2},
    "SnapshotView": {"count": 1, "latest_index": 1000, "latest_term": 2, "latest_id": "2-1000", "latest_size": 81_920},
    "WorkerView": {"active_jobs": 1, "pool_size": 8, "version": "1.4.2"},
    "Incident": {"at": AT, "process": "shard-0", "reason": "terminated by SIGKILL"},
    "FailureView": {"error": "cannot cancel a job that is completed"},
    "AuthStatus": {"has_keys": True},
    "PrincipalView": {"name": "mailer", "kind": "key", "roles": ["worker"], "home": "acme", "key_hash": KEY_HASH},
    "KeyView": {"name": "mailer", "role": "worker", "enabled": True, "prefix": KEY[:11], "queue_scope": "emails.*"},
    "KeyCreated": {"api_key": KEY, "prefix": KEY[:11]},
    "KeyRoles": {"roles": ["auditor"]},
    "RoleView": {"name": "auditor"},
    "Permission": {"resource": "jobs", "actions": ["read", "list"]},
    "NamespaceView": {"name": "acme", "state": "active"},
    "NamespaceMade": {"name": "acme", "status": "created"},
    "RateLimitAnswer": {"read_rps": 500.0, "read_burst": 1000.0, "write_rps": 100.0, "write_burst": 200.0},
    "QuotasView": {"max_jobs": 1000000, "max_queues": 100},
    "SsoView": BODIES["set_sso_settings"] | {"oidc_group_claim": "groups"},
}
_OWN["QueueDetail"] = _OWN["QueueView"] | {"left": 15, "rate_room": None, "rate_room_at": None}
_OWN["WorkerDetail"] = _OWN["WorkerView"]
_NEVER = {"WhyView": {"active", "worker_id", "hostname", "max_retries", "attempt"}}
_IDS = {"BatchView": BATCH, "BulkView": BULK, "ScheduleView": SCHEDULE, "DeletedSchedule": SCHEDULE}
_NAMES = {"ScheduleView": "daily-report", "DeletedSchedule": "daily-report"}
_WORKERS = {"WorkerView", "WorkerDetail"}


def curl(endpoint: Endpoint, api: str) -> str:
    """The request as a command line."""
    path = api + endpoint.path
    for name, value in PATHS.items():
        path = path.replace(f"{{{name}}}", value)
    if query := QUERIES.get(endpoint.name):
        path += f"?{query}"
    quote = "'" if "?" in path else ""
    method = "" if endpoint.method == "GET" else f"-X {endpoint.method} "
    stream = "-N " if endpoint.media == "text/event-stream" else ""
    line = f"curl {stream}{method}{quote}localhost:8080{path}{quote}"
    if endpoint.body is None:
        return line
    text = json.dumps(body_of(endpoint), ensure_ascii=False).replace("'", "'\\''")
    return f"{line} \\\n  -H 'content-type: application/json' \\\n  -d '{text}'"


def body_of(endpoint: Endpoint) -> Any:
    """By hand; made from its type for an endpoint that has none yet."""
    return BODIES[endpoint.name] if endpoint.name in BODIES else answer_of(endpoint.body)


def answer_of(kind: Any) -> Any:
    """An answer of this type."""
    return _of(inspect.type_info(kind), "", "")


def _of(kind: inspect.Type, struct: str, name: str) -> Any:
    if isinstance(kind, inspect.Metadata):
        return _of(kind.type, struct, name)
    if isinstance(kind, inspect.UnionType):
        bare = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        return _of(bare[0], struct, name)
    if isinstance(kind, inspect.StructType):
        return _struct(kind)
    if isinstance(kind, inspect.ListType):
        known = _VALUES.get(name)
        return known if isinstance(known, list) else [_of(kind.item_type, struct, name.removesuffix("s"))]
    if isinstance(kind, inspect.DictType):
        key = JOB if name == "jobs" else "normal" if name == "by_priority" else "WRONG_STATE"
        return {key: _of(kind.value_type, struct, "")}
    return _plain(kind, struct, name)


def _struct(kind: inspect.StructType) -> dict[str, Any]:
    """Fields that may be left out are, where an answer with every field would be of no job that ever was."""
    struct = kind.cls.__name__
    shown = {}
    for field in kind.fields:
        is_bare = not field.required and kind.cls.__struct_config__.omit_defaults
        if is_bare and field.encode_name not in _VALUES and field.encode_name not in _USUAL:
            continue
        if (not field.required and field.encode_name in ("error", "code")) or field.name in _NEVER.get(struct, ()):
            continue
        shown[field.encode_name] = _of(field.type, struct, field.encode_name)
    own = {name: value for name, value in _OWN.get(struct, {}).items() if name in shown or value is not None}
    return shown | own


_USUAL = {"next_run", "last_run", "next_at", "succeeded", "failed", "data", "started_at", "next_slots", "status"}


def _plain(kind: inspect.Type, struct: str, name: str) -> Any:
    value = _named(struct, name)
    if isinstance(kind, inspect.StrType):
        return (
            value if isinstance(value, str) else AT if name.endswith(("_at", "_run", "since", "slot", "until")) else ""
        )
    if isinstance(kind, inspect.BoolType):
        return value if isinstance(value, bool) else name.endswith("is_exact") or name == "is_complete"
    if isinstance(kind, inspect.IntType):
        return value if isinstance(value, int) and not isinstance(value, bool) else 2 if name == "priority" else 0
    if isinstance(kind, inspect.FloatType):
        return value if isinstance(value, (int, float)) else 0.0
    if isinstance(kind, inspect.LiteralType):
        return value if value in kind.values else kind.values[0]
    return value if value is not None else {}


def _named(struct: str, name: str) -> Any:
    if name == "status":
        return _STATUSES.get(struct, "ok")
    if name == "id":
        return "worker-1" if struct in _WORKERS else _IDS.get(struct, JOB)
    if name == "name":
        return _NAMES.get(struct, "emails.send")
    if name.endswith(("_at", "_run")):
        return LATER if name in ("next_attempt_at", "next_run", "next_at", "completed_at", "finished_at") else AT
    if name in ("minute", "first_at", "last_at", "next_slot", "last_heartbeat"):
        return AT
    return _VALUES.get(name)
