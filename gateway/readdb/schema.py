"""The tables of the read database: the seed's schema, plus the mirror's own tables.

The mirror's `statements.py` writes them and `gateway/search` reads them; `ddl.py` turns them into statements for SQLite
and for PostgreSQL. A read database is derived from the shards and never migrated: when the fingerprint of its schema
differs, it is rebuilt.

Departures from the seed, each with its reason:

- `shard` on the mirrored tables: a shard deletes and rescans only its own rows.
- `namespace` on the tables that lists read. The rows of all tenants stand together, and every statement for a tenant
  selects its own (`gateway/search/tenancy.py`). It leads the indexes, so a tenant never pays for the rows of another.
- The keys of `jobs` and `job_errors` include the shard, because a job may move and each shard is followed at its own
  pace. For a moment such a job may have a row for both shards, or for neither. Each shard writes and deletes its own
  row only, so the result is right whichever shard's change arrives first. An id is therefore not unique, and no foreign
  key refers to it.
- `job_errors` has `claim`, the number of the claim that failed; (job, claim) names the record on the shard. It also has
  the worker, the start of the attempt, the queue in which it failed (the job may have moved since) and the fingerprint
  of the error's text (`corvo/model/fingerprint.py`); NULL: the job did not fail.
- `queues` has the shard's exact counts, so that no list counts jobs. It has the totals at the start of the minute of
  its newest change; earlier minutes are in `queue_minutes` (`minutes.py`). It has `draining`, and the retention of each
  final state: NULL is the server's default, 0 is for ever.
- `workers` has a row per shard, because a worker may fetch from several; queries merge them. It has `pool_size` and
  `version`.
- `batches` counts every outcome and has three callbacks (JSON: queue, payload); `callback_queue` and `callback_payload`
  are those of `on_complete`. `pending` counts the jobs that have not ended yet, `failed` every outcome but success.
- `schedules` has `paused`, the settings of its jobs and the number of slots to catch up. `last_run` is the last slot
  that fired. `next_run` is NULL while the schedule is paused; after a change it is the time of that change, until the
  leader has computed the slot.
- Names of schedules are unique on the shards; here the rows may arrive in any order, so the index is not unique.
- `unique_locks` shows the shards' locks, including expired locks whose timer has not removed them yet: compare
  `expires_at`. A lock costs its job two more rows; jobs without a unique key pay nothing.
- `queue_claims` is `rate_limit_window` with a count per timestamp instead of a row per claim; the seed's table is a
  view of it. `queue_stats` and `events` are views too (`views.py`).
- `audit_records` has a row for each record of the audit log (`audit.py`); the seed's `audit_logs` is a view of it.
- `jobs.seq` numbers the versions of rows: each write of a job gives it a higher number. The text indexes follow it
  (`text_index.py`). PostgreSQL has no text index but keeps the column.
- `jobs` has `claimed_at`, for a claim that waits for its start, and `idempotency_key`, for the view `tasks`.
- The seed's ten indexes keep their names and begin with their columns, behind the namespace where a list of a tenant is
  read from them. `idx_jobs_state` also has `created_at`, because pages are read in the order of creation.
  `idx_job_errors_job` and `idx_rate_limit` are the tables' unique keys.
  Further indexes serve the sorts and filters of search.
- Foreign keys are declared, not enforced: rows of several shards arrive in any order. On PostgreSQL there are none.
- `jobs_fts` and the other text indexes of SQLite are filled after the jobs, not with them (`text_index.py`).
"""

from typing import Any

import sqlalchemy as sa

from gateway.readdb import audit, minutes, text_index  # noqa: F401  # their tables belong to the schema
from gateway.readdb.seed_tables import (
    INTEGER,
    counted_id,
    integer,
    integer_or_null,
    job_reference,
    metadata,
    real,
    real_or_null,
    shard_in_key,
    tenant,
    text,
    text_or_null,
)

ROWS_VERSION = 4  # raise it when `rows.py` changes the meaning of a column, which the fingerprint cannot see

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("seq", INTEGER, primary_key=True),
    text("id"),
    integer("shard"),
    tenant(),
    text("queue"),
    text("state", default="pending"),
    text("payload"),
    integer("priority", default=2),
    integer("attempt", default=0),
    integer("max_retries", default=3),
    text("retry_backoff", default="exponential"),
    integer("retry_base_delay_ms", default=5000),
    integer("retry_max_delay_ms", default=600_000),
    text_or_null("unique_key"),
    text_or_null("idempotency_key"),
    text_or_null("batch_id"),
    text_or_null("worker_id"),
    text_or_null("hostname"),
    text_or_null("tags"),
    text_or_null("progress"),
    text_or_null("checkpoint"),
    text_or_null("result"),
    text_or_null("result_schema"),
    text_or_null("parent_id"),
    text_or_null("chain_id"),
    integer_or_null("chain_step"),
    text_or_null("chain_config"),
    integer("provider_error", default=0),
    text_or_null("routing"),
    text_or_null("routing_target"),
    integer("routing_index", default=0),
    integer_or_null("agent_max_iterations"),
    real_or_null("agent_max_cost_usd"),
    text_or_null("agent_iteration_timeout"),
    integer("agent_iteration", default=0),
    real("agent_total_cost_usd", default=0),
    text_or_null("hold_reason"),
    text_or_null("lease_expires_at"),
    text_or_null("scheduled_at"),
    text_or_null("expire_at"),
    text("created_at"),
    text_or_null("claimed_at"),
    text_or_null("started_at"),
    text_or_null("completed_at"),
    text_or_null("failed_at"),
    sa.UniqueConstraint("id", "shard"),
)


def _where(condition: sa.ColumnElement[bool] | sa.TextClause) -> dict[str, Any]:
    """The condition of a partial index, for both databases."""
    return {"sqlite_where": condition, "postgresql_where": condition}


# Named, because search chooses its index itself: without statistics SQLite chooses badly.
BY_QUEUE = sa.Index("idx_jobs_queue_state_priority", jobs.c.queue, jobs.c.state, jobs.c.priority, jobs.c.created_at)
BY_STATE = sa.Index("idx_jobs_state", jobs.c.namespace, jobs.c.state, jobs.c.created_at)
BY_CREATED = sa.Index("idx_jobs_created", jobs.c.namespace, jobs.c.created_at)
BY_ID = "sqlite_autoindex_jobs_1"  # SQLite's name for the index of the unique (id, shard)
sa.Index(
    "idx_jobs_scheduled",
    jobs.c.state,
    jobs.c.scheduled_at,
    **_where(sa.text("state IN ('scheduled', 'retrying')")),
)
sa.Index("idx_jobs_lease", jobs.c.state, jobs.c.lease_expires_at, **_where(sa.text("state = 'active'")))
BY_WORKER = sa.Index(
    "idx_jobs_worker",
    jobs.c.namespace,
    jobs.c.worker_id,
    jobs.c.started_at,
    **_where(sa.text("state = 'active'")),
)


def _where_given(name: str, column: str, *before: str) -> sa.Index:
    """A partial index of the jobs that have a value there; the others cost nothing."""
    indexed = [jobs.c[each] for each in (*before, column)]
    return sa.Index(name, *indexed, **_where(jobs.c[column].is_not(None)))


BY_UNIQUE = _where_given("idx_jobs_unique_key", "unique_key", "namespace")
sa.Index("idx_jobs_unique", jobs.c.queue, jobs.c.unique_key, **_where(jobs.c.unique_key.is_not(None)))
BY_BATCH = _where_given("idx_jobs_batch", "batch_id")
BY_CHAIN = _where_given("idx_jobs_chain", "chain_id")
BY_PARENT = _where_given("idx_jobs_parent", "parent_id")
BY_EXPIRE = _where_given("idx_jobs_expire", "expire_at", "namespace")

# For the sorts of search. Nearly every job has normal priority and one attempt; those have no entry.
BY_STARTED = _where_given("idx_jobs_started", "started_at", "namespace")
BY_COMPLETED = _where_given("idx_jobs_completed", "completed_at", "namespace")
BY_FAILED = _where_given("idx_jobs_failed", "failed_at", "namespace")
BY_DUE = _where_given("idx_jobs_due", "scheduled_at", "namespace")
URGENT = "priority < 2"
TRIED_AGAIN = "attempt > 1"
BY_PRIORITY = sa.Index(
    "idx_jobs_priority", jobs.c.namespace, jobs.c.priority, jobs.c.created_at, **_where(sa.text(URGENT))
)
BY_ATTEMPT = sa.Index(
    "idx_jobs_attempt", jobs.c.namespace, jobs.c.attempt, jobs.c.created_at, **_where(sa.text(TRIED_AGAIN))
)

job_errors = sa.Table(
    "job_errors",
    metadata,
    counted_id(),
    job_reference(),
    integer("claim"),
    integer("shard"),
    tenant(),
    integer("attempt"),
    text("error"),
    text_or_null("backtrace"),
    text("created_at"),
    text_or_null("worker_id"),
    text_or_null("started_at"),
    text("queue", default=""),
    text_or_null("fingerprint"),
    sqlite_autoincrement=True,
)
sa.Index("idx_job_errors_job", job_errors.c.job_id, job_errors.c.claim, job_errors.c.shard, unique=True)
BY_FINGERPRINT = sa.Index(
    "idx_job_errors_fingerprint",
    job_errors.c.namespace,
    job_errors.c.queue,
    job_errors.c.fingerprint,
    job_errors.c.created_at,
)

unique_locks = sa.Table(
    "unique_locks",
    metadata,
    text("queue", primary_key=True),
    text("unique_key", primary_key=True),
    text("job_id"),
    text("expires_at"),
    integer("shard"),
)

# Claims of a rate-limited queue within its window, per timestamp. The view `rate_limit_window` has a row per claim.
queue_claims = sa.Table(
    "queue_claims",
    metadata,
    text("queue"),
    text("fetched_at"),
    integer("shard"),
    integer("claims"),
)
sa.Index("idx_rate_limit", queue_claims.c.queue, queue_claims.c.fetched_at, unique=True)

batches = sa.Table(
    "batches",
    metadata,
    text("id", primary_key=True),
    integer("shard"),
    tenant(),
    text("state"),  # open, sealed, completed
    text_or_null("description"),
    integer("total"),
    integer("pending"),
    integer("succeeded", default=0),
    integer("failed", default=0),
    integer("dead", default=0),
    integer("cancelled", default=0),
    integer("deleted", default=0),
    text_or_null("on_complete"),
    text_or_null("on_success"),
    text_or_null("on_failure"),
    text("created_at"),
    text_or_null("finished_at"),
    # The callback `on_complete`.
    text_or_null("callback_queue"),
    text_or_null("callback_payload"),
    text_or_null("queues"),  # JSON: of its jobs, until they are too many
)
BATCHES_BY_CREATED = sa.Index("idx_batches_created", batches.c.namespace, batches.c.created_at, batches.c.id)
BATCHES_BY_STATE = sa.Index(
    "idx_batches_state_created", batches.c.namespace, batches.c.state, batches.c.created_at, batches.c.id
)

queues = sa.Table(
    "queues",
    metadata,
    text("name", primary_key=True),
    integer("shard"),
    tenant(),
    integer("paused", default=0),
    integer("draining", default=0),
    integer_or_null("max_concurrency"),
    integer_or_null("rate_limit"),
    integer_or_null("rate_window_ms"),
    integer_or_null("retention_completed_ms"),
    integer_or_null("retention_dead_ms"),
    integer_or_null("retention_cancelled_ms"),
    text_or_null("provider", sa.ForeignKey("providers.name")),
    text("created_at"),
    # Current number of jobs in each state.
    integer("pending"),
    integer("active"),
    integer("held"),
    integer("completed"),
    integer("dead"),
    integer("scheduled"),
    integer("retrying"),
    integer("cancelled"),
    # All-time totals.
    integer("enqueued"),
    integer("completed_total"),
    integer("failed"),
    integer("dead_total"),
    # The minute of the newest change, since 1970, and the four totals at its start.
    integer("minute"),
    integer("minute_enqueued"),
    integer("minute_completed"),
    integer("minute_failed"),
    integer("minute_dead"),
)
QUEUES_BY_NAMESPACE = sa.Index("idx_queues_namespace", queues.c.namespace, queues.c.name)

workers = sa.Table(
    "workers",
    metadata,
    text("id", primary_key=True),
    shard_in_key(),
    tenant(),
    text_or_null("hostname"),
    text_or_null("queues"),  # JSON array of names
    text("last_heartbeat"),
    text("started_at"),
    integer_or_null("pool_size"),
    text_or_null("version"),
)
sa.Index("idx_workers_namespace", workers.c.namespace, workers.c.id)

schedules = sa.Table(
    "schedules",
    metadata,
    text("id", primary_key=True),
    integer("shard"),
    text("name", index=True),
    text("queue"),
    text("cron"),
    text("timezone", default="UTC"),
    text("payload"),
    text_or_null("unique_key"),
    integer("max_retries", default=3),
    text_or_null("last_run"),
    text_or_null("next_run"),
    text("created_at"),
    text("updated_at"),
    integer("paused", default=0),
    integer("priority", default=2),
    text_or_null("tags"),
    text("catch_up"),
    integer("catch_up_max"),
    integer("fired"),
)

# Workers that wait at a shard now. Not replicated; cleared when the mirror starts or loses the shard.
presence = sa.Table(
    "presence",
    metadata,
    text("id", primary_key=True),
    shard_in_key(),
    tenant(),
    text_or_null("hostname"),
    text_or_null("queues"),
    text("last_heartbeat"),
    text("started_at"),
    integer_or_null("pool_size"),
    text_or_null("version"),
)
sa.Index("idx_presence_namespace", presence.c.namespace, presence.c.id)

# How far each shard has been followed. `gateway/search/lag.py` explains the timestamps.
mirror_cursors = sa.Table(
    "mirror_cursors",
    metadata,
    shard_in_key(),
    integer("applied_index"),  # every change up to this index is in this database
    text("updated_at"),  # when this row was last written
    text_or_null("caught_up_at"),  # when the mirror last had all changes; NULL: not yet
    integer("is_following"),  # 1: at the end of the shard's feed, where a pull waits
    integer("rows_total"),  # rows written or deleted since the database was created
)

# One row.
mirror_meta = sa.Table(
    "mirror_meta",
    metadata,
    sa.Column("id", INTEGER, primary_key=True, autoincrement=False),
    text("schema_version"),
    text("generation"),  # changes with each rebuild
    text("origin"),  # SQLite: the boot id when the file was last open for writing; PostgreSQL: the cluster id
    integer("is_clean"),  # 1: closed cleanly and synced to disk
    integer("shards"),
    text("created_at"),  # when the build began
    text_or_null("published_at"),  # when readers first saw it
)
