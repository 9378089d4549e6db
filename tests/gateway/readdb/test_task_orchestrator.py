"""The migration for those who keep a task table of their own in PostgreSQL."""

from importlib.resources import files

import psycopg
import pytest

from corvo.model.job import JobError, Priority, Worker
from corvo.model.job_extras import JobExtras
from corvo.model.lifecycle import State
from tests.gateway.search.conftest import Written
from tests.support.builders import NOW, a_job, job_id
from tests.support.read_dbs import ServerPlace

MIGRATION = (files("gateway.readdb") / "task_orchestrator.sql").read_bytes()
SECOND = 10**9


@pytest.fixture
def written(postgres, request):
    made = Written(ServerPlace(postgres, request.node.name.removeprefix("test_")[:40]))
    yield made
    made.close()
    made.place.clear()


@pytest.fixture
def database(postgres):
    """A schema of somebody's own, migrated twice."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS orchestrator CASCADE")
        connection.execute("CREATE SCHEMA orchestrator")
        connection.execute("SET search_path TO orchestrator")
        connection.execute(MIGRATION)
        connection.execute(MIGRATION)
        yield connection
        connection.execute("DROP SCHEMA orchestrator CASCADE")


def copy(database, written):
    return database.execute("SELECT * FROM copy_from_corvo(%s)", (written.place.address.schema,)).fetchone()


def test_the_tables_have_the_indexes_and_the_trigger(database):
    found = database.execute("SELECT indexname FROM pg_indexes WHERE schemaname = 'orchestrator'").fetchall()
    assert {name for (name,) in found} == {
        *("tasks_pkey", "unique_idempotency_key", "tasks_job_id_key", "idx_tasks_claimable", "idx_tasks_status"),
        *("idx_tasks_type_status", "idx_tasks_worker_id", "workers_pkey", "idx_workers_heartbeat"),
        "idx_workers_leader",
    }
    database.execute("INSERT INTO tasks (type, updated_at) VALUES ('a', '2000-01-01')")
    database.execute("UPDATE tasks SET priority = 5")
    assert database.execute("SELECT updated_at > '2001-01-01' FROM tasks").fetchall() == [(True,)]


def test_an_idempotency_key_makes_one_task_of_a_type(database):
    enqueue = """
        INSERT INTO tasks (type, payload, idempotency_key) VALUES (%s, '{"to":"user@example.com"}', 'email-user-123')
        ON CONFLICT (type, idempotency_key) DO UPDATE SET updated_at = NOW() RETURNING id
    """
    first, again, other = (
        database.execute(enqueue, (kind,)).fetchone() for kind in ("email:send", "email:send", "email:check")
    )

    assert first == again != other


def test_one_worker_at_a_time_takes_the_lead(database):
    database.execute("INSERT INTO workers (id, hostname, pool_size) VALUES ('a', 'h', 1), ('b', 'h', 1)")
    lead = """
        UPDATE workers SET is_leader = TRUE, leader_until = NOW() + interval '30 seconds' WHERE id = %s AND (
            NOT EXISTS (SELECT 1 FROM workers WHERE is_leader = TRUE AND leader_until > NOW())
            OR (id = %s AND is_leader = TRUE))
    """

    assert [database.execute(lead, (who, who)).rowcount for who in ("a", "b", "a")] == [1, 0, 1]


def test_jobs_and_workers_are_copied_and_follow(database, written):
    at = [NOW + number * SECOND for number in range(4)]
    written.put(
        a_job(1, payload=b'{"a": 1}', priority=Priority.CRITICAL, created_at=at[0]),
        a_job(2, state=State.DEAD, attempt=1, created_at=at[0], started_at=at[1], failed_at=at[2]),
        JobError(job_id(2), 1, 1, "boom", "", at[2], worker_id="w1", started_at=at[1], queue="mail"),
        Worker("w1", "host", ["mail"], at[0], at[1], 8, "1.2"),
    )

    assert copy(database, written) == (3, 0)
    assert copy(database, written) == (0, 0), "what is equal is left alone"
    tasks = "SELECT job_id, type, payload, status::text, priority, attempts, last_error FROM tasks ORDER BY job_id"
    assert database.execute(tasks).fetchall() == [
        (job_id(1), "mail", {"a": 1}, "pending", 2, 0, None),
        (job_id(2), "mail", {}, "dead_letter", 0, 1, "boom"),
    ]
    assert database.execute("SELECT id, pool_size, version, is_leader FROM workers").fetchall() == [
        ("w1", 8, "1.2", False)
    ]

    ids = database.execute("SELECT id FROM tasks ORDER BY job_id").fetchall()
    written.put(a_job(1, payload=b'{"a": 1}', state=State.COMPLETED, started_at=at[1], completed_at=at[3]))
    written.forget(job_id(2), [1])
    assert copy(database, written) == (1, 1)
    assert database.execute("SELECT id, status::text FROM tasks").fetchall() == [(*ids[0], "completed")]


def test_tasks_of_other_origin_stay(database, written):
    database.execute("INSERT INTO tasks (type) VALUES ('own')")

    assert copy(database, written) == (0, 0)
    assert database.execute("SELECT type FROM tasks").fetchall() == [("own",)]


def test_a_key_that_is_used_again_belongs_to_the_newest_task(database, written):
    key = JobExtras(unique_key="k")
    written.put(a_job(1, state=State.COMPLETED, created_at=NOW, extras=key))
    copy(database, written)
    written.put(a_job(2, created_at=NOW + 1, extras=key))
    copy(database, written)

    keys = database.execute("SELECT job_id, idempotency_key FROM tasks ORDER BY job_id").fetchall()
    assert keys == [(job_id(1), None), (job_id(2), "k")]


def test_a_job_on_its_way_between_shards_is_one_task(database, written):
    written.put(a_job(1))
    written.put(a_job(1, queue="video"), shard=1)

    copy(database, written)

    assert database.execute("SELECT count(*) FROM tasks").fetchall() == [(1,)]
