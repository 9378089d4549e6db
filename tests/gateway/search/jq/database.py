"""A real SQLite with a column of payloads, asked as the gateway asks."""

import sqlite3
from collections.abc import Iterable

import sqlalchemy as sa

from gateway.search import jq
from gateway.search.database import Prepared
from gateway.search.sqlite import DIALECT

PAYLOADS = sa.table("payloads", sa.column("id", sa.Integer), sa.column("payload", sa.String))


class Payloads:
    def __init__(self, texts: Iterable[str | None]) -> None:
        self.connection = sqlite3.connect(":memory:")
        jq.functions(self.connection)
        self.connection.execute("CREATE TABLE payloads (id INTEGER PRIMARY KEY, payload TEXT)")
        self.connection.executemany("INSERT INTO payloads VALUES (?, ?)", enumerate(texts))

    def matching(self, expression: str) -> list[int]:
        """Positions of the payloads that match. Every row is answered with 0 or 1, never NULL: `not` depends on it."""
        condition = jq.condition(expression, PAYLOADS.c.payload)
        prepared = Prepared(sa.select(PAYLOADS.c.id, sa.cast(condition, sa.Integer)).order_by(PAYLOADS.c.id))
        rows = self.connection.execute(*prepared.on(DIALECT)).fetchall()
        assert {answer for _, answer in rows} <= {0, 1}
        found = [id_ for id_, answer in rows if answer]
        where = Prepared(sa.select(PAYLOADS.c.id).where(condition).order_by(PAYLOADS.c.id))
        assert [id_ for (id_,) in self.connection.execute(*where.on(DIALECT))] == found
        return found


def is_match(expression: str, payload: str | None) -> bool:
    return Payloads([payload]).matching(expression) == [0]
