-- The tables of a task orchestrator in PostgreSQL, and a function that fills them from Corvo's read database.
--
--     psql "$DATABASE_URL" -f task_orchestrator.sql
--     psql "$DATABASE_URL" -c "SELECT * FROM copy_from_corvo('corvo')"
--
-- It may be run again at any time. The tables are made in the first schema of the search path. Corvo's own schema is
-- replaced by every rebuild: make them elsewhere.
--
-- Departures from the published schema, each with its reason:
--   * tasks.job_id: Corvo's ids are no UUIDs. tasks.id is derived from it, so that a job always has the same one.
--   * idx_tasks_claimable has no condition on next_retry_at: PostgreSQL allows no NOW() in an index.
--   * tasks.idempotency_key is copied for the newest task of a type with that key only: Corvo lets a key be used again.

DO $$
BEGIN
    CREATE TYPE task_status AS ENUM ('pending', 'claimed', 'running', 'completed', 'failed', 'dead_letter');
EXCEPTION
    WHEN duplicate_object THEN NULL;
END $$;

CREATE TABLE IF NOT EXISTS tasks (
    id              UUID        NOT NULL DEFAULT gen_random_uuid(),
    type            TEXT        NOT NULL,
    payload         JSONB,
    status          task_status NOT NULL DEFAULT 'pending',
    priority        INT         NOT NULL DEFAULT 0,
    idempotency_key TEXT,
    worker_id       TEXT,
    created_at      TIMESTAMP   NOT NULL DEFAULT NOW(),
    claimed_at      TIMESTAMP,
    started_at      TIMESTAMP,
    completed_at    TIMESTAMP,
    updated_at      TIMESTAMP   NOT NULL DEFAULT NOW(),
    attempts        INT         NOT NULL DEFAULT 0,
    max_retries     INT         NOT NULL DEFAULT 3,
    last_error      TEXT,
    next_retry_at   TIMESTAMP,
    job_id          TEXT        UNIQUE,
    CONSTRAINT tasks_pkey PRIMARY KEY (id),
    CONSTRAINT unique_idempotency_key UNIQUE (type, idempotency_key)
);

CREATE TABLE IF NOT EXISTS workers (
    id             TEXT      NOT NULL,
    hostname       TEXT      NOT NULL,
    started_at     TIMESTAMP NOT NULL DEFAULT NOW(),
    last_heartbeat TIMESTAMP NOT NULL DEFAULT NOW(),
    pool_size      INT       NOT NULL,
    version        TEXT,
    is_leader      BOOLEAN   NOT NULL DEFAULT FALSE,
    leader_until   TIMESTAMP,
    CONSTRAINT workers_pkey PRIMARY KEY (id)
);

CREATE INDEX IF NOT EXISTS idx_tasks_claimable ON tasks (priority DESC, created_at ASC) WHERE status = 'pending';
CREATE INDEX IF NOT EXISTS idx_tasks_status ON tasks (status);
CREATE INDEX IF NOT EXISTS idx_tasks_type_status ON tasks (type, status);
CREATE INDEX IF NOT EXISTS idx_tasks_worker_id ON tasks (worker_id) WHERE worker_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_workers_heartbeat ON workers (last_heartbeat);
CREATE INDEX IF NOT EXISTS idx_workers_leader ON workers (is_leader, leader_until) WHERE is_leader = TRUE;

CREATE OR REPLACE FUNCTION update_updated_at_column() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at = NOW();
    RETURN NEW;
END $$;

DROP TRIGGER IF EXISTS update_tasks_updated_at ON tasks;
CREATE TRIGGER update_tasks_updated_at
BEFORE UPDATE ON tasks
FOR EACH ROW EXECUTE FUNCTION update_updated_at_column();

-- Makes both tables equal to the views `tasks` and `task_workers` of a Corvo schema, and says how many rows it wrote and
-- deleted. Tasks that did not come from Corvo (job_id IS NULL) stay. Rows that are equal already are not touched.
CREATE OR REPLACE FUNCTION copy_from_corvo(corvo_schema TEXT, OUT written BIGINT, OUT deleted BIGINT)
LANGUAGE plpgsql AS $$
DECLARE
    counted BIGINT;
BEGIN
    CREATE TEMPORARY TABLE corvo_tasks ON COMMIT DROP AS TABLE tasks WITH NO DATA;
    -- A job on its way between two shards may have two rows: one is enough.
    EXECUTE format(
        $query$
        INSERT INTO corvo_tasks
        SELECT md5(job.id)::uuid, job.type, job.payload, job.status::task_status, job.priority,
            CASE WHEN row_number() OVER (
                PARTITION BY job.type, job.idempotency_key ORDER BY job.created_at DESC, job.id DESC
            ) = 1 THEN job.idempotency_key END,
            job.worker_id, job.created_at AT TIME ZONE 'UTC', job.claimed_at AT TIME ZONE 'UTC',
            job.started_at AT TIME ZONE 'UTC', job.completed_at AT TIME ZONE 'UTC', job.updated_at AT TIME ZONE 'UTC',
            job.attempts, job.max_retries, job.last_error, job.next_retry_at AT TIME ZONE 'UTC', job.id
        FROM (SELECT DISTINCT ON (id) * FROM %1$I.tasks ORDER BY id, updated_at DESC) job
        $query$, corvo_schema);

    DELETE FROM tasks WHERE job_id IS NOT NULL AND NOT EXISTS (SELECT FROM corvo_tasks c WHERE c.job_id = tasks.job_id);
    GET DIAGNOSTICS deleted = ROW_COUNT;
    -- Keys that have gone to another task are freed before that task takes them.
    UPDATE tasks SET idempotency_key = NULL FROM corvo_tasks c
    WHERE c.job_id = tasks.job_id AND tasks.idempotency_key IS NOT NULL
    AND tasks.idempotency_key IS DISTINCT FROM c.idempotency_key;
    INSERT INTO tasks SELECT * FROM corvo_tasks
    ON CONFLICT (job_id) DO UPDATE SET
        type = EXCLUDED.type, payload = EXCLUDED.payload, status = EXCLUDED.status, priority = EXCLUDED.priority,
        idempotency_key = EXCLUDED.idempotency_key, worker_id = EXCLUDED.worker_id, created_at = EXCLUDED.created_at,
        claimed_at = EXCLUDED.claimed_at, started_at = EXCLUDED.started_at, completed_at = EXCLUDED.completed_at,
        attempts = EXCLUDED.attempts, max_retries = EXCLUDED.max_retries, last_error = EXCLUDED.last_error,
        next_retry_at = EXCLUDED.next_retry_at
    WHERE (tasks.type, tasks.payload, tasks.status, tasks.priority, tasks.idempotency_key, tasks.worker_id,
        tasks.created_at, tasks.claimed_at, tasks.started_at, tasks.completed_at, tasks.attempts, tasks.max_retries,
        tasks.last_error, tasks.next_retry_at)
    IS DISTINCT FROM (EXCLUDED.type, EXCLUDED.payload, EXCLUDED.status, EXCLUDED.priority, EXCLUDED.idempotency_key,
        EXCLUDED.worker_id, EXCLUDED.created_at, EXCLUDED.claimed_at, EXCLUDED.started_at, EXCLUDED.completed_at,
        EXCLUDED.attempts, EXCLUDED.max_retries, EXCLUDED.last_error, EXCLUDED.next_retry_at);
    GET DIAGNOSTICS written = ROW_COUNT;
    DROP TABLE corvo_tasks;

    CREATE TEMPORARY TABLE corvo_workers ON COMMIT DROP AS TABLE workers WITH NO DATA;
    EXECUTE format(
        $query$
        INSERT INTO corvo_workers
        SELECT id, hostname, started_at AT TIME ZONE 'UTC', last_heartbeat AT TIME ZONE 'UTC', pool_size, version,
            is_leader, leader_until AT TIME ZONE 'UTC'
        FROM %I.task_workers
        $query$, corvo_schema);
    DELETE FROM workers WHERE NOT EXISTS (SELECT FROM corvo_workers c WHERE c.id = workers.id);
    GET DIAGNOSTICS counted = ROW_COUNT;
    deleted = deleted + counted;
    INSERT INTO workers SELECT * FROM corvo_workers
    ON CONFLICT (id) DO UPDATE SET
        hostname = EXCLUDED.hostname, started_at = EXCLUDED.started_at, last_heartbeat = EXCLUDED.last_heartbeat,
        pool_size = EXCLUDED.pool_size, version = EXCLUDED.version
    WHERE (workers.hostname, workers.started_at, workers.last_heartbeat, workers.pool_size, workers.version)
    IS DISTINCT FROM (EXCLUDED.hostname, EXCLUDED.started_at, EXCLUDED.last_heartbeat, EXCLUDED.pool_size,
        EXCLUDED.version);
    GET DIAGNOSTICS counted = ROW_COUNT;
    written = written + counted;
    DROP TABLE corvo_workers;
END $$;
