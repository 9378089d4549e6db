"""A transactional outbox for SQLAlchemy: a job is enqueued if the transaction that asked for it is committed.

`put` writes a row beside the program's own; `Relay` turns rows into jobs. Each row has a key, which becomes the
`idempotency_key` of its job: a relay that dies between the enqueue and the removal of the row enqueues it again, and
the server knows the key. So there is one job for each row, for as long as the server keeps the job.
"""

import time
import uuid
from collections.abc import Callable
from typing import Any

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    insert,
    select,
    update,
)
from sqlalchemy import delete as delete_from

from ..bodies import EnqueueBatchBody, EnqueueBody
from ..calls import without_defaults
from ..errors import InvalidRequest
from ..http import Client

TABLE = "corvo_outbox"
ROWS_MAX = 500  # of one round
ERROR_CHARS_MAX = 2000


def outbox_table(metadata: MetaData, name: str = TABLE) -> Table:
    """The table, for the program's own metadata and migrations."""
    return Table(
        name,
        metadata,
        Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
        Column("key", String(64), nullable=False, unique=True),
        Column("body", Text, nullable=False),
        Column("refused", Text),  # why the server will not take it; null: it is waiting
    )


def put(connection: Connection, table: Table, body: EnqueueBody) -> str:
    """Writes a job to be into the connection's transaction. Returns its idempotency key. Works with a session too:
    `put(session.connection(), …)`."""
    key = body.idempotency_key or f"outbox-{uuid.uuid4().hex}"
    text = msgspec.json.encode({**without_defaults(body), "idempotency_key": key}).decode()
    connection.execute(insert(table).values(key=key, body=text))
    return key


class Relay:
    """Enqueues what is in the table, oldest first. Any number of them may run."""

    def __init__(self, engine: Engine, table: Table, client: Client) -> None:
        self._engine = engine
        self._table = table
        self._client = client

    def run_once(self) -> int:
        """One round: how many rows became jobs. Raises when the server cannot be reached; then they stay."""
        table = self._table
        with self._engine.begin() as connection:
            waiting = select(table.c.id, table.c.body).where(table.c.refused.is_(None)).order_by(table.c.id)
            # Other relays take other rows, where the database can skip those that are locked.
            rows = connection.execute(waiting.limit(ROWS_MAX).with_for_update(skip_locked=True)).all()
            if not rows:
                return 0
            refused = self._enqueue([(row.id, msgspec.json.decode(row.body, type=EnqueueBody)) for row in rows])
            for number, reason in refused.items():
                connection.execute(update(table).where(table.c.id == number).values(refused=reason))
            done = [row.id for row in rows if row.id not in refused]
            connection.execute(delete_from(table).where(table.c.id.in_(done)))
        return len(done)

    def run(self, is_over: Callable[[], bool], pause_s: float = 0.5) -> None:
        """Rounds until `is_over`; pauses when there is nothing to do."""
        while not is_over():
            if not self.run_once():
                time.sleep(pause_s)

    def _enqueue(self, bodies: list[tuple[int, EnqueueBody]]) -> dict[int, str]:
        """Why the server refused which rows. One bad job refuses a whole request; then they go one by one."""
        try:
            self._client.enqueue_batch(EnqueueBatchBody([body for _, body in bodies]))
        except InvalidRequest as error:
            if len(bodies) == 1:
                return {bodies[0][0]: f"{error.code}: {error.message}"[:ERROR_CHARS_MAX]}
            refused: dict[int, str] = {}
            for one in bodies:
                refused |= self._enqueue([one])
            return refused
        return {}


def rows_refused(connection: Connection, table: Table) -> list[tuple[Any, ...]]:
    """Key, body and reason of the rows that no relay will try again."""
    wanted = select(table.c.key, table.c.body, table.c.refused).where(table.c.refused.is_not(None))
    return [tuple(row) for row in connection.execute(wanted.order_by(table.c.id))]
