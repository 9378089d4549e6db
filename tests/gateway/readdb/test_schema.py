import sqlite3

import pytest

from gateway.mirror.store import UntrustedDatabase
from gateway.readdb.ddl import create_statements, schema_version, seed_rows
from gateway.readdb.postgres_connection import POSTGRES
from gateway.readdb.schema import ROWS_VERSION
from gateway.readdb.seed_tables import metadata
from tests.support.builders import NOW

SEED_TABLES = """
jobs job_errors unique_locks batches queues workers schedules
job_usage budgets job_iterations job_scores providers approval_policies webhooks
api_keys auth_roles auth_key_roles namespaces sso_settings
"""
SEED_VIEWS = "queue_stats rate_limit_window events audit_logs"
SEED_INDEXES = {
    "idx_jobs_queue_state_priority": ("jobs", "queue state priority created_at"),
    "idx_jobs_state": ("jobs", "state"),
    "idx_jobs_scheduled": ("jobs", "state scheduled_at"),
    "idx_jobs_lease": ("jobs", "state lease_expires_at"),
    "idx_jobs_unique": ("jobs", "queue unique_key"),
    "idx_jobs_batch": ("jobs", "batch_id"),
    "idx_jobs_expire": ("jobs", "expire_at"),
    "idx_jobs_created": ("jobs", "created_at"),
    "idx_job_errors_job": ("job_errors", "job_id"),
    "idx_rate_limit": ("queue_claims", "queue fetched_at"),
}
OWN_TABLES = (
    "presence queue_claims queue_minutes audit_records mirror_cursors mirror_meta documents job_tags deleted_jobs "
    "index_progress"
)


def a_database():
    database = sqlite3.connect(":memory:")
    for statement in create_statements():
        database.execute(statement)
    for statement, values in seed_rows():
        database.execute(statement, values)
    return database


def test_the_schema_has_every_table_of_the_seed_and_the_mirror_s_own():
    tables = a_database().execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    names = {name for (name,) in tables if not name.startswith(("jobs_fts", "jobs_grams", "sqlite_"))}

    assert names == {*SEED_TABLES.split(), *OWN_TABLES.split()}
    assert names == set(metadata.tables)


def test_the_schema_has_the_views_of_the_seed(kept_place):
    store = kept_place.store()
    try:
        store.open_trusted().close()
    except UntrustedDatabase:
        store.publish(store.begin(NOW), NOW)

    for view in SEED_VIEWS.split():
        assert kept_place.read(f"SELECT * FROM {view}") == []


@pytest.mark.parametrize("index", SEED_INDEXES)
def test_an_index_of_the_seed_has_its_name_and_begins_with_its_columns_behind_the_namespace(index):
    table, columns = SEED_INDEXES[index]
    (found,) = [one for one in metadata.tables[table].indexes if one.name == index]

    indexed = [column.name for column in found.columns if column.name != "namespace"]
    assert indexed[: len(columns.split())] == columns.split()
    assert "namespace" not in [column.name for column in found.columns][1:]
    assert any(f" {index} " in statement for statement in create_statements())
    assert any(f" {index} " in statement for statement in create_statements(POSTGRES))


def test_seeded_rows_are_there():
    database = a_database()

    assert database.execute("SELECT name FROM namespaces").fetchall() == [("default",)]
    assert database.execute("SELECT id, oidc_group_claim, group_role_mappings FROM sso_settings").fetchall() == [
        ("singleton", "groups", "{}")
    ]


def test_the_version_is_the_fingerprint_of_the_statements():
    assert schema_version().startswith(f"{ROWS_VERSION}-")
    assert create_statements() == create_statements()
    assert schema_version() != schema_version(POSTGRES)


def test_a_job_s_failures_are_unique_by_claim():
    database = a_database()
    insert = "INSERT INTO job_errors (job_id, claim, shard, attempt, error, created_at) VALUES ('j', 1, 0, 1, 'e', 't')"
    database.execute(insert)

    try:
        database.execute(insert)
    except sqlite3.IntegrityError as error:
        assert "job_errors.job_id, job_errors.claim, job_errors.shard" in str(error)
    else:
        raise AssertionError("two failures of one claim")
