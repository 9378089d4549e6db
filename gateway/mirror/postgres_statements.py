"""The statements that write a PostgreSQL read database, derived from those of SQLite: the same tables, columns, keys.

Values are sent as one array per column, so all rows of a table in one turn need one statement and one round trip. A
conflict replaces the whole row: columns that a statement does not name get their defaults, as on SQLite.
"""

from collections.abc import Sequence

import sqlalchemy as sa

from gateway.mirror.columns import WORKER_COLUMNS, Row, Value
from gateway.mirror.statements import CURSOR_COLUMNS, META_COLUMNS, TableStatements
from gateway.readdb import schema
from gateway.readdb.postgres_connection import without_nul

Columns = list[list[Value]]


class Put:
    def __init__(self, table: sa.Table, columns: Sequence[str]) -> None:
        key = _key(table)
        values = ", ".join(f"%s::{_type(table.c[name])}[]" for name in columns)
        rest = [column.name for column in table.c if column.name not in key and not column.primary_key]
        self.sql = (
            f"INSERT INTO {table.name} ({', '.join(columns)}) SELECT * FROM unnest({values})"
            f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {', '.join(f'{name} = EXCLUDED.{name}' for name in rest)}"
        )


class OfTable:
    """The statements that write one mirrored table."""

    def __init__(self, statements: TableStatements) -> None:
        table, name = statements.table, statements.name
        self.put = Put(table, statements.columns).sql
        gone = (*name, "shard")
        arrays = ", ".join(f"%s::{_type(table.c[one])}[]" for one in gone)
        same = " AND ".join(f"{table.name}.{one} = gone.{one}" for one in gone)
        self.gone = f"DELETE FROM {table.name} USING unnest({arrays}) AS gone({', '.join(gone)}) WHERE {same}"
        names, marks = ", ".join(name), ", ".join(["%s"] * len(name))
        self.clear_stretch = (
            f"DELETE FROM {table.name} WHERE ({names}) >= ({marks}) AND ({names}) < ({marks}) AND shard = %s"
        )


def by_column(rows: Sequence[Row]) -> Columns:
    return [[without_nul(value) for value in column] for column in zip(*rows, strict=True)]


def to_bounds(bounds: Row) -> Row:
    """A bound may be a name plus NUL, which PostgreSQL cannot store. \\x01 sorts alike: no name has a lower one."""
    return tuple(value.replace("\0", "\1") if isinstance(value, str) else value for value in bounds)


def _key(table: sa.Table) -> list[str]:
    """The columns that identify a row: a unique constraint or index beside a serial id, else the primary key."""
    for constraint in table.constraints:
        if isinstance(constraint, sa.UniqueConstraint):
            return [column.name for column in constraint.columns]
    for index in table.indexes:
        if index.unique:
            return [column.name for column in index.columns]
    return [column.name for column in table.primary_key]


def _type(column: sa.Column[object]) -> str:
    return {sa.Text: "text", sa.Integer: "bigint"}[type(column.type)]


PUT_PRESENCE = Put(schema.presence, WORKER_COLUMNS).sql
CLEAR_PRESENCE = "DELETE FROM presence"
CLEAR_PRESENCE_OF = "DELETE FROM presence WHERE shard = %s"
PUT_CURSORS = Put(schema.mirror_cursors, CURSOR_COLUMNS).sql
VOUCH = "UPDATE mirror_cursors SET updated_at = %s, caught_up_at = %s WHERE shard = ANY(%s)"
FALL_BEHIND = "UPDATE mirror_cursors SET is_following = 0 WHERE shard = %s"
FALL_BEHIND_ALL = "UPDATE mirror_cursors SET is_following = 0"
READ_CURSORS = "SELECT shard, applied_index, caught_up_at, rows_total FROM mirror_cursors ORDER BY shard"
PUT_META = Put(schema.mirror_meta, META_COLUMNS).sql
READ_META = f"SELECT {', '.join(META_COLUMNS)} FROM mirror_meta WHERE id = 1"
