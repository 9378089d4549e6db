"""The statements that create an empty read database on SQLite or PostgreSQL: tables, indexes, views, first rows."""

from functools import cache
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from corvo.model.timestamps import to_rfc3339
from gateway.readdb.schema import ROWS_VERSION
from gateway.readdb.seed_tables import metadata, namespaces, sso_settings
from gateway.readdb.text_index import VIRTUAL_TABLES, index_progress
from gateway.readdb.views import create_views

SQLITE = sqlite.dialect(paramstyle="named")
# JSON columns for search and for users' own queries. Parsed once, on write; invalid JSON gives NULL, not an error.
_JSON_COLUMNS = [
    """CREATE FUNCTION to_jsonb_or_null(document text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN document::jsonb;
EXCEPTION WHEN OTHERS THEN
    BEGIN
        RETURN replace(document, '\\u0000', '\\ufffd')::jsonb;
    EXCEPTION WHEN OTHERS THEN
        RETURN NULL;
    END;
END $$""",
    "ALTER TABLE jobs ADD COLUMN payload_json jsonb GENERATED ALWAYS AS (to_jsonb_or_null(payload)) STORED",
    "ALTER TABLE jobs ADD COLUMN tags_json jsonb GENERATED ALWAYS AS (to_jsonb_or_null(tags)) STORED",
    "CREATE INDEX idx_jobs_tags ON jobs USING gin (tags_json jsonb_path_ops) WHERE tags_json IS NOT NULL",
]
_UNDATED = to_rfc3339(0)  # seeded rows must be the same in every node's database


def create_statements(dialect: sa.Dialect = SQLITE) -> list[str]:
    """The whole schema: parents before children, each table followed by its indexes, views last."""
    statements = []
    is_sqlite = dialect.name == "sqlite"
    for table in metadata.sorted_tables:
        if table.info.get("sqlite_only") and not is_sqlite:
            continue
        # PostgreSQL would enforce foreign keys, and rows of several shards arrive in any order.
        create = CreateTable(table, include_foreign_key_constraints=None if is_sqlite else [])
        statements.append(str(create.compile(dialect=dialect)))
        statements += [
            str(CreateIndex(index).compile(dialect=dialect))
            for index in sorted(table.indexes, key=lambda index: str(index.name))
        ]
    return [*statements, *(VIRTUAL_TABLES if is_sqlite else _JSON_COLUMNS), *create_views(dialect)]


def seed_rows(dialect: sa.Dialect = SQLITE) -> list[tuple[str, dict[str, Any]]]:
    """The rows of a new database, as statements with their values."""
    rows: list[tuple[sa.Table, dict[str, Any]]] = [
        (namespaces, {"name": "default", "created_at": _UNDATED}),
        (sso_settings, {"id": "singleton", "updated_at": _UNDATED}),
    ]
    if dialect.name == "sqlite":
        rows.append((index_progress, {"id": 1, "jobs_seq": 0, "error_id": 0}))
    return [(str(table.insert().compile(dialect=dialect, column_keys=list(values))), values) for table, values in rows]


@cache
def schema_version(dialect: sa.Dialect = SQLITE) -> str:
    """The fingerprint of every statement above."""
    return f"{ROWS_VERSION}-{blake2b(''.join(create_statements(dialect)).encode(), digest_size=8).hexdigest()}"
