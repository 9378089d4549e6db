"""A read database in PostgreSQL: one schema of a user's database, written by one mirror.

Tables and rows are those of SQLite (`gateway/readdb/ddl.py`). A turn is one transaction with `synchronous_commit =
off`: a crash of PostgreSQL loses only the last transactions, with their cursors, and the shards send those changes
again.

    corvo              the published schema
    corvo_new          the schema being built; two renames in one transaction publish it
    corvo_old_{…}      former schemas, until no reader uses them

A database is trusted if its schema version, its cluster and its number of shards match; PostgreSQL takes care of
durability. An advisory lock keeps a second mirror out of the same schema. A comment marks the schema as Corvo's; a
schema without that mark is never touched.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import msgspec
import psycopg
from psycopg import sql

from corvo.model.timestamps import to_rfc3339
from corvo.runtime.read_db import PostgresAddress
from gateway.mirror import postgres_statements as statements
from gateway.mirror.columns import Row
from gateway.mirror.shard_writes import Cursor, Meta, ShardWrite, cursor_row, meta_row, parts, to_meta
from gateway.mirror.store import AbsentDatabase, Remedy, UntrustedDatabase
from gateway.readdb.ddl import create_statements, schema_version, seed_rows
from gateway.readdb.postgres_connection import POSTGRES, Connection, connect, cut_after

OURS = "Corvo's read database: derived, written by a mirror, replaced as a whole"
TURN_S_MAX = 60.0  # of one transaction; a server that takes longer counts as unreachable
RELEASE_S_MAX = 1.0
DROP_PATIENCE_MS = 200  # readers keep the former schema alive; the next check tries again
_DAMAGE = "XX"  # the SQLSTATE class of damaged tables and indexes

_of_table = cache(statements.OfTable)


class PostgresDb:
    """The writer of one schema."""

    def __init__(self, address: PostgresAddress, schema: str) -> None:
        self._connection = connect(address, application="corvo mirror", synchronous_commit="off")
        self.look_at(schema)

    def look_at(self, schema: str) -> None:
        """From now on, names without a schema refer to this one."""
        self._connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))

    def create(self, generation: str, origin: str, shards: int, now: int) -> None:
        with self._transaction():
            for statement in create_statements(POSTGRES):
                self._connection.execute(statement.encode())
            for statement, values in seed_rows(POSTGRES):
                self._connection.execute(statement.encode(), values)
            self._put_meta(Meta(schema_version(POSTGRES), generation, origin, False, shards, to_rfc3339(now)))

    def meta(self) -> Meta:
        row = self._connection.execute(statements.READ_META.encode()).fetchone()
        if row is None:
            raise psycopg.DataError("mirror_meta is empty")
        return to_meta(row)

    def put_meta(self, meta: Meta) -> None:
        with self._transaction():
            self._put_meta(meta)

    def _put_meta(self, meta: Meta) -> None:
        self._put(statements.PUT_META, [meta_row(meta)])

    @property
    def generation(self) -> str:
        return self.meta().generation

    def analyse(self) -> None:
        """Updates the planner's statistics now; autovacuum would do it a minute later."""
        with cut_after(self._connection, TURN_S_MAX):
            self._connection.execute("ANALYZE jobs, job_errors, queues, batches, workers")

    def forget_the_moment(self) -> None:
        with self._transaction():
            self._connection.execute(statements.CLEAR_PRESENCE)
            self._connection.execute(statements.FALL_BEHIND_ALL)

    def cursors(self) -> list[tuple[int, int, str | None, int]]:
        return self._connection.execute(statements.READ_CURSORS).fetchall()

    def write(self, turns: Sequence[ShardWrite]) -> None:
        with self._transaction():
            for turn in turns:
                self._write_turn(turn)

    def _write_turn(self, turn: ShardWrite) -> None:
        for table, rows, bounds in parts(turn):
            of_table = _of_table(table)
            if bounds is not None:
                self._connection.execute(of_table.clear_stretch.encode(), (*statements.to_bounds(bounds), turn.shard))
            if rows.gone:
                self._put(of_table.gone, rows.gone)
            if rows.put:
                self._put(of_table.put, rows.put)
        if turn.presence is not None:
            self._connection.execute(statements.CLEAR_PRESENCE_OF, (turn.shard,))
            if turn.presence:
                self._put(statements.PUT_PRESENCE, turn.presence)
        if turn.cursor is not None:
            self._put(statements.PUT_CURSORS, [cursor_row(turn.cursor)])

    def put_cursors(self, cursors: Sequence[Cursor]) -> None:
        with self._transaction():
            self._put(statements.PUT_CURSORS, [cursor_row(cursor) for cursor in cursors])

    def index(self, budget_ms: float) -> bool:
        return False  # PostgreSQL updates its indexes with the jobs

    def vouch(self, shards: Sequence[int], now: int) -> None:
        at = to_rfc3339(now)
        with self._transaction():
            self._connection.execute(statements.VOUCH, (at, at, list(shards)))

    def fall_behind(self, shard: int) -> None:
        with self._transaction():
            self._connection.execute(statements.FALL_BEHIND, (shard,))
            self._connection.execute(statements.CLEAR_PRESENCE_OF, (shard,))

    def close(self) -> None:
        self._connection.close()

    def _put(self, statement: str, rows: Sequence[Row]) -> None:
        self._connection.execute(statement.encode(), statements.by_column(rows))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with cut_after(self._connection, TURN_S_MAX), self._connection.transaction():
            yield


class PostgresStore:
    """The store of a read database in PostgreSQL. Its own connection holds the lock and renames schemas."""

    faults: tuple[type[Exception], ...] = (psycopg.Error,)

    def __init__(self, address: PostgresAddress, cluster_id: str, shards: int) -> None:
        self._address = address
        self.name = address.shown
        self._cluster_id = cluster_id
        self._shards = shards
        self._schema = address.schema
        self._new = f"{address.schema}_new"
        self._old = f"{address.schema}_old_"
        self._connection: Connection | None = None

    def open_trusted(self) -> PostgresDb:
        self._hold()
        if not self._is_there(self._schema):
            raise AbsentDatabase("the schema does not exist")
        self._drop_former()
        database = PostgresDb(self._address, self._schema)
        try:
            meta = database.meta()
            if meta.schema_version != schema_version(POSTGRES):
                raise UntrustedDatabase(f"its schema version is {meta.schema_version}, not {schema_version(POSTGRES)}")
            if meta.shards != self._shards:
                raise UntrustedDatabase(f"it was made for {meta.shards} shards, the node has {self._shards}")
            if meta.origin != self._cluster_id:
                raise UntrustedDatabase("it belongs to another cluster")
            database.put_meta(msgspec.structs.replace(meta, is_clean=False))
            database.forget_the_moment()
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn, psycopg.DataError) as error:
            database.close()
            raise UntrustedDatabase(f"it cannot be read: {error}") from None
        except (psycopg.Error, UntrustedDatabase):
            database.close()
            raise
        return database

    def begin(self, now: int) -> PostgresDb:
        self._hold()
        self._drop(self._new)
        with self._transaction() as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self._new)))
            connection.execute(
                sql.SQL("COMMENT ON SCHEMA {} IS {}").format(sql.Identifier(self._new), sql.Literal(OURS))
            )
        database = PostgresDb(self._address, self._new)
        try:
            database.create(f"{now:x}", self._cluster_id, self._shards, now)
        except psycopg.Error:
            database.close()
            raise
        return database

    def remove_published(self) -> None:
        self._drop(self._schema)

    def publish(self, building: PostgresDb, now: int) -> None:
        meta = msgspec.structs.replace(building.meta(), published_at=to_rfc3339(now))
        building.put_meta(meta)
        building.analyse()
        rename = sql.SQL("ALTER SCHEMA {} RENAME TO {}").format
        is_former = self._is_there(self._schema)
        with self._transaction() as connection:
            if is_former:
                connection.execute(rename(sql.Identifier(self._schema), sql.Identifier(self._old + meta.generation)))
            connection.execute(rename(sql.Identifier(self._new), sql.Identifier(self._schema)))
        building.look_at(self._schema)

    def retire(self, former: PostgresDb) -> None:
        former.close()  # `look` drops the schema

    def abandon(self, building: PostgresDb) -> None:
        building.close()
        self._drop(self._new)

    def look(self, published: PostgresDb) -> None:
        if not self._is_there(self._schema):
            raise psycopg.errors.InvalidSchemaName("the schema was dropped")
        self._drop_former()

    def close_clean(self, published: PostgresDb) -> None:
        published.forget_the_moment()
        published.put_meta(msgspec.structs.replace(published.meta(), is_clean=True))
        published.close()
        self.release()

    def release(self) -> None:
        """Unlocks explicitly: the server may notice a closed connection only later."""
        if self._connection is not None:
            try:
                with cut_after(self._connection, RELEASE_S_MAX):
                    self._connection.execute("SELECT pg_advisory_unlock_all()")
            except psycopg.Error:
                pass  # the server has released the lock, or will
            self._connection.close()
            self._connection = None

    def remedy(self, error: Exception) -> Remedy:
        """Any other error: opening the database again shows whether it can be trusted."""
        return "rebuild" if (getattr(error, "sqlstate", None) or "").startswith(_DAMAGE) else "reopen"

    def _hold(self) -> None:
        if self._connection is not None:
            return
        connection = connect(self._address, application="corvo mirror", lock_timeout=str(DROP_PATIENCE_MS))
        lock = "SELECT pg_try_advisory_lock(hashtext('corvo mirror'), hashtext(%s))"
        is_ours = connection.execute(lock, (self._schema,)).fetchone() == (True,)
        if not is_ours:
            connection.close()
            raise psycopg.OperationalError(
                f"another mirror writes schema {self._schema}; give each node its own: ?schema=…"
            )
        self._connection = connection

    def _is_there(self, schema: str) -> bool:
        """Refuses a schema of that name without Corvo's mark."""
        found = self._held.execute(
            "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s", (schema,)
        ).fetchone()
        if found is not None and found != (OURS,):
            raise psycopg.OperationalError(f"schema {schema} was not created by Corvo; name another: ?schema=…")
        return found is not None

    def _drop(self, schema: str) -> None:
        if self._is_there(schema):
            with self._transaction() as connection:
                connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))

    def _drop_former(self) -> None:
        former = "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s)"
        for (schema,) in self._held.execute(former, (self._old,)).fetchall():
            try:
                self._drop(schema)
            except psycopg.errors.LockNotAvailable:
                pass  # a reader holds it; the next check tries again

    @property
    def _held(self) -> Connection:
        assert self._connection is not None, "the lock is not held"
        return self._connection

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with cut_after(self._held, TURN_S_MAX), self._held.transaction():
            yield self._held
