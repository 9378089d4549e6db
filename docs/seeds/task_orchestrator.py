"""task-orchestrator-schema.md."""

from docs.seeds.rows import (
    Row,
    Section,
    Shell,
    Sql,
    Step,
    Table,
    active,
    completed,
    dead,
    differs,
    enqueued,
    post,
    works,
)

_TASKS = "See [`tasks`](../how-to/use-postgresql.md#tasks)."
_MIGRATION = "In the [migration](../how-to/use-postgresql.md#a-task-table-of-your-own)."


def _column(name: str, kind: str, where: str, expected: object, *before: Step, is_same: bool = True) -> Row:
    make = works if is_same else differs
    return make(
        f"task-{name.replace('_', '-')}",
        f"`{name}` {kind}",
        where,
        Sql(f"select {name} from tasks where id = '$JOB'", [(expected,)]),
        before=before or [enqueued("seed.task", '{"n": 1}')],
        fresh=["seed.task"],
    )


_FAILED = (*active("seed.task"), post("/fail/$JOB", '{"error": "disk full"}'))

TASKS = Section(
    "Table `tasks`",
    (
        works(
            "task-view",
            "table `tasks`",
            "A view of `jobs` in read.db, on SQLite and PostgreSQL. Jobs are made by `POST /enqueue`, not by `INSERT`.",
            Table(
                "tasks",
                "id type payload status priority idempotency_key worker_id created_at claimed_at started_at "
                "completed_at updated_at attempts max_retries last_error next_retry_at",
            ),
        ),
        _column("id", "UUID", "Text that names the shard.", "$JOB", is_same=False),
        _column("type", "TEXT", "The queue.", "seed.task"),
        _column("payload", "JSONB", "`jsonb` on PostgreSQL, text on SQLite.", '{"n": 1}'),
        _column("status", "task_status", _TASKS, "pending"),
        _column("priority", "INT, higher is more urgent", "2, 1 or 0.", 0, is_same=False),
        works(
            "task-priority-integer",
            "`priority`: any integer at enqueue",
            "2 and more is critical, 1 high, else normal.",
            post("/enqueue", '{"queue": "seed.task", "priority": 10}', status=201, JOB="job_id"),
            Sql("select priority > 0 from tasks where id = '$JOB'", [(1,)]),
        ),
        _column(
            "idempotency_key",
            "TEXT",
            "Else the unique key.",
            "email-user-123",
            enqueued("seed.task", more='"idempotency_key": "email-user-123"'),
        ),
        _column("worker_id", "TEXT", "Of the newest claim.", "seed-worker", *active("seed.task")),
        _column("created_at", "TIMESTAMP", "`timestamptz` on PostgreSQL.", str),
        _column("claimed_at", "TIMESTAMP", "Of a claim in two steps, else the start.", str, *active("seed.task")),
        _column("started_at", "TIMESTAMP", _TASKS, str, *active("seed.task")),
        _column("completed_at", "TIMESTAMP", "Also when it died.", str, *completed("seed.task")),
        _column("updated_at", "TIMESTAMP", "The latest of these times.", str),
        _column("attempts", "INT", _TASKS, 1, *active("seed.task")),
        _column("max_retries", "INT, default 3", "Attempts in all.", 3),
        _column("last_error", "TEXT", _TASKS, "disk full", *_FAILED),
        _column("next_retry_at", "TIMESTAMP", _TASKS, str, *_FAILED),
    ),
)


def _status(name: str, where: str, *before: Step) -> Row:
    return works(
        f"task-status-{name.replace('_', '-')}",
        f"`{name}`",
        where,
        Sql("select status from tasks where id = '$JOB'", [(name,)]),
        before=before,
        fresh=["seed.task"],
    )


STATUSES = Section(
    "Enum `task_status`",
    (
        _status("pending", "Also scheduled, retrying and held jobs.", enqueued("seed.task")),
        _status(
            "claimed",
            "A claim in two steps: `two_phase` at fetch.",
            enqueued("seed.task"),
            post("/fetch", '{"queues": ["seed.task"], "worker_id": "w", "two_phase": true}'),
        ),
        _status("running", "Active jobs.", *active("seed.task")),
        _status("completed", "As in the seed.", *completed("seed.task")),
        _status("failed", "Cancelled jobs: the only other end.", enqueued("seed.task"), post("/jobs/$JOB/cancel")),
        _status("dead_letter", "Dead jobs.", *dead("seed.task")),
        differs("task-enum", "`CREATE TYPE task_status AS ENUM`", "Text in the view; the enum in the migration."),
    ),
)

KEYS = Section(
    "Constraints and idempotency",
    (
        works("task-pkey", "`tasks_pkey` on `id`", "Ids are unique."),
        works(
            "task-unique",
            "`unique_idempotency_key` on `type`, `idempotency_key`: a second insert returns the first id",
            "`idempotency_key` at enqueue; see [unique jobs](../how-to/unique-jobs.md).",
            post("/enqueue", '{"queue": "email:send", "idempotency_key": "email-user-123"}', {"job_id": "$JOB"}),
            before=[enqueued("email:send", more='"idempotency_key": "email-user-123"')],
            fresh=["email:send"],
        ),
        works(
            "task-unique-scope",
            "another type with the same key makes another task",
            "By queue.",
            post("/enqueue", '{"queue": "sms:send", "idempotency_key": "email-user-123"}', status=201),
            before=[enqueued("email:send", more='"idempotency_key": "email-user-123"')],
            fresh=["email:send", "sms:send"],
        ),
    ),
)

WORKERS = Section(
    "Table `workers`",
    (
        differs(
            "task-workers",
            "table `workers`: `id hostname started_at last_heartbeat pool_size version is_leader leader_until`",
            "The view `task_workers`; `workers` is the table of corvo-schema.md.",
            Table("task_workers", "id hostname started_at last_heartbeat pool_size version is_leader leader_until"),
        ),
        works(
            "task-worker-pool",
            "`pool_size`, `version`",
            "Given at fetch.",
            Sql("select pool_size, version from task_workers where id = 'seed-pool'", [(8, "1.2")]),
            before=[
                enqueued("seed.task"),
                post(
                    "/fetch",
                    '{"queues": ["seed.task"], "worker_id": "seed-pool", "pool_size": 8, "version": "1.2"}',
                ),
            ],
            fresh=["seed.task"],
        ),
        differs(
            "task-leader",
            "a worker leads by lease: `is_leader`, `leader_until`",
            "No worker leads, the server does: always false and empty.",
        ),
        differs(
            "task-worker-timeout",
            "`WORKER_TIMEOUT`: a dead worker's tasks are recovered",
            "Each job by its own lease; a silent worker is removed after `--worker-timeout`.",
        ),
        works(
            "task-worker-timeout-setting",
            "`WORKER_TIMEOUT` is a setting",
            "`--worker-timeout`, `CORVO_WORKER_TIMEOUT`; 15 minutes.",
            Shell("corvo config", ("worker_timeout",)),
        ),
    ),
)


INDEXES = Section(
    "Indexes, trigger, migration",
    (
        differs(
            "task-idx-claimable",
            "`idx_tasks_claimable`",
            f"{_MIGRATION} Without the condition on `next_retry_at`: PostgreSQL allows no `NOW()` in an index.",
        ),
        works("task-idx-status", "`idx_tasks_status`", _MIGRATION),
        works("task-idx-type-status", "`idx_tasks_type_status`", _MIGRATION),
        works("task-idx-worker", "`idx_tasks_worker_id`", _MIGRATION),
        works("task-idx-heartbeat", "`workers_pkey`, `idx_workers_heartbeat`, `idx_workers_leader`", _MIGRATION),
        works("task-trigger", "trigger `update_tasks_updated_at`", _MIGRATION),
        works(
            "task-migration",
            "`psql $DATABASE_URL -f migrations/001_initial_schema.sql`",
            "`gateway/readdb/task_orchestrator.sql`: the tables, and a function that copies Corvo's jobs into them.",
        ),
    ),
)

SECTIONS = (TASKS, STATUSES, KEYS, WORKERS, INDEXES)
