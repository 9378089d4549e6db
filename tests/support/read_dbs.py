"""A read database for a test, on SQLite or on PostgreSQL: where it is, how it is written, what strangers see."""

import sqlite3
from pathlib import Path
from typing import Any, Protocol

import psycopg
from psycopg import sql

from corvo.runtime.read_db import PostgresAddress, parse_read_db
from gateway.mirror.postgres_store import PostgresStore
from gateway.mirror.sqlite_store import SqliteStore, remove
from gateway.readdb.file import READ_DB
from gateway.readdb.seed_tables import metadata

from .postgres import Server

BOOT = "boot-1"


class Place(Protocol):
    faults: tuple[type[Exception], ...]
    address: Path | PostgresAddress  # what `ReadDb` takes

    def store(self, shards: int = 2, origin: str = BOOT) -> Any:
        """Of a mirror that has just started, on this boot or for this cluster."""

    def read(self, statement: str) -> list[Any]:
        """Through a connection of one's own, as strangers do. Raises one of `faults`."""

    def tamper(self, statement: str) -> None:
        """Write into it, as nobody should."""

    def remove(self) -> None:
        """As somebody's mistake does."""

    def stored(self, text: str) -> str:
        """What becomes of a text."""

    def columns(self, table: str) -> list[str]:
        """Of a table or view, in their order."""


class FilePlace:
    faults: tuple[type[Exception], ...] = (sqlite3.Error,)

    def __init__(self, folder: Path) -> None:
        self.address = folder / READ_DB

    def store(self, shards: int = 2, origin: str = BOOT) -> SqliteStore:
        return SqliteStore(self.address, origin, shards)

    def read(self, statement: str) -> list[Any]:
        connection = sqlite3.connect(f"{self.address.absolute().as_uri()}?mode=ro", uri=True)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()

    def tamper(self, statement: str) -> None:
        connection = sqlite3.connect(self.address)
        connection.execute(statement)
        connection.commit()
        connection.close()

    def remove(self) -> None:
        remove(self.address)

    def stored(self, text: str) -> str:
        return text

    def columns(self, table: str) -> list[str]:
        return [row[1] for row in self.read(f"PRAGMA table_info({table})")]


class ServerPlace:
    faults: tuple[type[Exception], ...] = (psycopg.Error,)

    def __init__(self, server: Server, schema: str) -> None:
        address = parse_read_db(f"{server.url}&schema={schema}")
        assert address is not None
        self.server = server
        self.address = address
        self._stores: list[PostgresStore] = []

    def store(self, shards: int = 2, origin: str = BOOT) -> PostgresStore:
        for former in self._stores:  # as the end of its process would
            former.release()
        self._stores = [PostgresStore(self.address, origin, shards)]
        return self._stores[0]

    def read(self, statement: str) -> list[Any]:
        with self._connect() as connection:
            return connection.execute(statement.encode()).fetchall()

    def tamper(self, statement: str) -> None:
        with self._connect() as connection:
            connection.execute(statement.encode())

    def remove(self) -> None:
        self.tamper(f"DROP SCHEMA {self.address.schema} CASCADE")

    def stored(self, text: str) -> str:
        return text.replace("\0", "\ufffd")

    def columns(self, table: str) -> list[str]:
        of_table = f"table_schema = '{self.address.schema}' AND table_name = '{table}'"
        named = f"SELECT column_name FROM information_schema.columns WHERE {of_table} ORDER BY ordinal_position"
        return [name for (name,) in self.read(named)]

    def wipe(self) -> bool:
        """Whether an empty database is left, for another test."""
        for store in self._stores:
            store.release()
        kept = {"mirror_meta", "namespaces", "sso_settings"}
        names = [table.name for table in metadata.sorted_tables if not table.info.get("sqlite_only")]
        try:
            self.tamper(";".join(f"DELETE FROM {table}" for table in names if table not in kept))
        except psycopg.Error:
            return False
        return True

    def clear(self) -> None:
        """The test is over."""
        for store in self._stores:
            store.release()
        found = "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s)"
        with self._connect() as connection:
            for (schema,) in connection.execute(found, (self.address.schema,)).fetchall():
                connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.address.url, autocommit=True, options=f"-c search_path={self.address.schema}")
