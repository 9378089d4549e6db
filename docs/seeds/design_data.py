"""corvo-design.md: the job, its states, the SQLite schema, what is atomic, the keys of the store."""

from docs.seeds.rows import (
    ABSENT,
    Http,
    Row,
    Section,
    Sql,
    Table,
    active,
    completed,
    dead,
    differs,
    enqueued,
    get,
    post,
    works,
)

_FIELDS = (
    *active(
        "seed.view",
        '{"to": "user@example.com"}',
        '"max_retries": 5, "tags": {"tenant": "acme-corp"}, '
        '"unique_key": "view", "unique_period": 3600, "expire_after": "1h", "retry_base_delay": "5s"',
    ),
    post("/heartbeat", '{"jobs": {"$JOB": {"progress": {"current": 450, "total": 1000, "message": "Sending"}}}}'),
    post("/fail/$JOB", '{"error": "SMTP timeout", "backtrace": "at send:42"}'),
)


def _field(names: str, where: str, answer: object, is_same: bool = True) -> Row:
    make = works if is_same else differs
    return make(
        f"job-{names.split()[0].replace('_', '-')}",
        ", ".join(f"`{name}`" for name in names.split()),
        where,
        get("/jobs/$JOB", answer),
        before=_FIELDS,
        fresh=["seed.view"],
    )


JOB = Section(
    "Data model: the job",
    (
        _field("id queue payload state", "As in the seed.", {"id": "$JOB", "queue": "seed.view", "state": "retrying"}),
        _field("priority", "A number: 0 critical, 1 high, 2 normal.", {"priority": 2}, is_same=False),
        _field("attempt max_retries retry_backoff", "As in the seed.", {"attempt": 1, "retry_backoff": "exponential"}),
        _field(
            "retry_base_delay retry_max_delay",
            "In milliseconds: `retry_base_delay_ms`, `retry_max_delay_ms`.",
            {"retry_base_delay_ms": 5000, "retry_max_delay_ms": 600000},
            is_same=False,
        ),
        _field(
            "created_at scheduled_at started_at completed_at",
            "A field without a value is left out instead of `null`.",
            {"created_at": str, "scheduled_at": str, "started_at": str, "completed_at": ABSENT},
        ),
        _field("expire_after", "As a time: `expire_at`.", {"expire_at": str}, is_same=False),
        _field("unique_key", "As in the seed.", {"unique_key": "view"}),
        _field(
            "unique_period",
            "Not shown in the job.",
            {"unique_period": ABSENT},
            is_same=False,
        ),
        _field("batch_id", "Left out when there is none.", {"batch_id": ABSENT}),
        _field(
            "tags progress checkpoint result",
            "As in the seed.",
            {"tags": {"tenant": "acme-corp"}, "progress": {"current": 450, "total": 1000, "message": "Sending"}},
        ),
        _field(
            "errors",
            "`attempt`, `error`, `backtrace`; the time is `created_at` instead of `at`.",
            {"errors": [{"attempt": 1, "error": "SMTP timeout", "backtrace": "at send:42", "created_at": str}]},
            is_same=False,
        ),
        _field(
            "worker",
            "Two fields: `worker_id`, `hostname`.",
            {"worker_id": "seed-worker", "hostname": "pod-1"},
            is_same=False,
        ),
    ),
)

STATES = Section(
    "Data model: states",
    (
        works(
            "state-scheduled",
            "`scheduled`",
            "Promoted when it is due, not by a tick.",
            post("/jobs/search", '{"queue": "seed.states", "state": ["scheduled"]}', {"total": 1}),
            before=[enqueued("seed.states", more='"delay": "1h"')],
            fresh=["seed.states"],
        ),
        works(
            "state-pending",
            "`pending`",
            "See [states](states.md).",
            get("/jobs/$JOB", {"state": "pending"}),
            before=[enqueued("seed.states")],
        ),
        works(
            "state-active",
            "`active`",
            "Under a lease, with a `lease_token`.",
            get("/jobs/$JOB", {"state": "active", "lease_expires_at": str}),
            before=active("seed.states"),
            fresh=["seed.states"],
        ),
        works(
            "state-completed",
            "`completed`",
            "Kept for seven days; a queue may have another [retention](../how-to/control-queues.md).",
            get("/jobs/$JOB", {"state": "completed", "completed_at": str}),
            before=completed("seed.states"),
            fresh=["seed.states"],
        ),
        works(
            "state-retrying",
            "`retrying`",
            "Waits out its backoff.",
            post("/fail/$JOB", '{"error": "x"}', {"status": "retrying"}),
            before=active("seed.states"),
            fresh=["seed.states"],
        ),
        works(
            "state-dead",
            "`dead`",
            "Kept for seven days.",
            get("/jobs/$JOB", {"state": "dead", "failed_at": str}),
            before=dead("seed.states"),
            fresh=["seed.states"],
        ),
        works(
            "state-cancelled",
            "`cancelled`",
            "The worker learns it by heartbeat.",
            post("/jobs/$JOB/cancel", "", {"status": "cancelled"}),
            before=[enqueued("seed.states")],
        ),
    ),
)


def _table(name: str, columns: str, where: str) -> Row:
    return works(f"table-{name.replace('_', '-')}", f"table `{name}`: `{columns}`", where, Table(name, columns))


def _index(name: str, columns: str, where: str = "As in the seed.") -> Row:
    return works(f"index-{name[4:].replace('_', '-')}", f"index `{name}` ({columns})", where, Table(name, columns))


TABLES = Section(
    "SQLite schema",
    (
        _table(
            "jobs",
            "id queue state payload priority attempt max_retries retry_backoff retry_base_delay_ms retry_max_delay_ms "
            "unique_key batch_id worker_id hostname tags progress checkpoint result lease_expires_at scheduled_at "
            "expire_at created_at started_at completed_at failed_at",
            "With `shard` and `seq` beside them; see [read.db](../explanation/read-db.md).",
        ),
        _index("idx_jobs_queue_state_priority", "queue state priority created_at"),
        _index(
            "idx_jobs_state",
            "namespace state created_at",
            "Begins with the namespace and goes on with `created_at`, for pages in the order of creation.",
        ),
        _index("idx_jobs_scheduled", "state scheduled_at", "For `scheduled` and `retrying` jobs."),
        _index("idx_jobs_lease", "state lease_expires_at"),
        _index("idx_jobs_unique", "queue unique_key"),
        _index("idx_jobs_batch", "batch_id"),
        _index("idx_jobs_expire", "expire_at"),
        _index("idx_jobs_created", "namespace created_at", "Begins with the namespace."),
        _table("job_errors", "id job_id attempt error backtrace created_at", "With worker, queue and fingerprint."),
        _index("idx_job_errors_job", "job_id claim shard", "Unique: it goes on with the claim and the shard."),
        _table("unique_locks", "queue unique_key job_id expires_at", "With the shard."),
        works(
            "table-unique-locks-rows",
            "`unique_locks` holds the locks",
            "A copy of the shards' locks.",
            Sql(
                "select queue, unique_key, job_id from unique_locks where unique_key = 'locked'",
                [("seed.locks", "locked", "$JOB")],
            ),
            before=[enqueued("seed.locks", more='"unique_key": "locked"')],
            fresh=["seed.locks"],
        ),
        _table("batches", "id total pending succeeded failed created_at", "As in the seed."),
        works(
            "table-batches-callback",
            "`batches`: `callback_queue`, `callback_payload`",
            "Those of `on_complete`.",
            Table("batches", "callback_queue callback_payload"),
        ),
        _table(
            "queues", "name paused max_concurrency rate_limit rate_window_ms created_at", "With counts and retention."
        ),
        works(
            "table-rate-limit-window",
            "table `rate_limit_window`: `queue`, `fetched_at`",
            "A view of `queue_claims`, which counts the claims of each moment.",
            Table("rate_limit_window", "queue fetched_at"),
        ),
        works(
            "rows-rate-limit-window",
            "`rate_limit_window` has a row for each claim of a throttled queue",
            "As in the seed.",
            Sql("select count(*) from rate_limit_window where queue = 'seed.claims'", [(1,)]),
            before=[post("/queues/seed.claims/throttle", '{"rate": 100, "period": "1m"}'), *active("seed.claims")],
            fresh=["seed.claims"],
        ),
        _index("idx_rate_limit", "queue fetched_at", "Of `queue_claims`; unique."),
        _table(
            "schedules",
            "id name queue cron timezone payload unique_key max_retries last_run next_run created_at",
            "With priority, tags and what is caught up.",
        ),
        _table("workers", "id hostname queues last_heartbeat started_at", "With pool size and version."),
        works(
            "table-queue-stats",
            "table `queue_stats`: `queue`, `enqueued`, `completed`, `failed`, `dead`",
            "A view of `queues`; minute by minute in `queue_minutes`.",
            Table("queue_stats", "queue enqueued completed failed dead"),
        ),
        differs(
            "table-events",
            "`INSERT INTO events (type, job_id, queue)`",
            "A view of the stored jobs' times and errors. The event log is `GET /cluster/events`.",
            Table("events", "type job_id queue created_at"),
            Sql(
                "select type from events where job_id = '$JOB' order by created_at",
                [("enqueued",), ("started",), ("completed",)],
            ),
            before=[*completed("seed.events")],
            fresh=["seed.events"],
        ),
    ),
)

_BATCH = """{
  "jobs": [{"queue": "seed.atomic", "payload": {}}],
  "batch": {"callback_queue": "seed.callback", "callback_payload": {"album_id": "album_42"}}
}"""

ATOMIC = Section(
    "Atomic operations",
    (
        works(
            "atomic-unique",
            "enqueue with unique check",
            "Lock and job are one entry of the log.",
            post(
                "/enqueue", '{"queue": "seed.atomic", "unique_key": "k"}', {"job_id": "$JOB", "unique_existing": True}
            ),
            before=[enqueued("seed.atomic", more='"unique_key": "k"')],
            fresh=["seed.atomic"],
        ),
        works(
            "atomic-fetch",
            "fetch with priority and pause check",
            "Highest priority first, oldest first within it.",
            post("/fetch", '{"queues": ["seed.atomic"], "worker_id": "w"}', {"job_id": "$URGENT"}),
            before=[enqueued("seed.atomic"), enqueued("seed.atomic", more='"priority": "critical"', name="URGENT")],
            fresh=["seed.atomic"],
        ),
        works(
            "atomic-batch",
            "batch completion: the last job makes the callback",
            "Also when batch and job live on different shards: once, across crashes.",
            post("/ack/$JOB"),
            post(
                "/fetch",
                '{"queues": ["seed.callback"], "worker_id": "w", "timeout": 5}',
                {"payload": {"album_id": "album_42"}},
            ),
            before=[
                Http("POST /api/v1/enqueue/batch", _BATCH, 201),
                *active("seed.atomic")[1:],
            ],
            fresh=["seed.atomic", "seed.callback"],
        ),
        differs(
            "atomic-bulk",
            "bulk operations as one statement",
            "In slices of 500 jobs, so that workers are answered in between; resumed after a crash.",
        ),
    ),
)

SECTIONS = (JOB, STATES, TABLES)
MORE_SECTIONS = (ATOMIC,)
