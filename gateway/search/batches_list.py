"""Lists batches, newest first, from an index in that order.

A key with a queue scope sees the batches whose jobs and callbacks are all inside. They are picked out of slices, so a
page may be shorter than its limit, or empty, and yet not the last.

Each row becomes a `Batch` again, and `batch_view` renders it. So a batch looks the same in a list and alone.
"""

from typing import Any

import msgspec
import sqlalchemy as sa

from corvo.model.errors import invalid
from corvo.model.job_extras import ChainStep
from corvo.model.namespaces import namespace_of_id
from corvo.model.timestamps import parse_rfc3339
from corvo.queries.batches import batch_view
from corvo.queries.batches_list import BatchesAnswer, BatchesQuery
from corvo.rules.batches import Batch, is_within
from gateway.readdb.schema import BATCHES_BY_CREATED, BATCHES_BY_STATE, batches, mirror_meta
from gateway.search.cursor import PageCursor, to_cursor, to_place
from gateway.search.database import Prepared, TenantDb, TenantSession
from gateway.search.lag import lag_ms
from gateway.search.tenancy import of_tenant

_COLUMNS = (
    batches.c.id,
    batches.c.created_at,
    batches.c.on_complete,
    batches.c.on_success,
    batches.c.on_failure,
    batches.c.description,
    batches.c.state,
    batches.c.total,
    batches.c.succeeded,
    batches.c.dead,
    batches.c.cancelled,
    batches.c.deleted,
    batches.c.finished_at,
    batches.c.queues,
)
SLICE = 1_000
SLICES_MAX = 10
_SHARDS = Prepared(sa.select(mirror_meta.c.shards))


class Callback(msgspec.Struct):
    queue: str
    payload: msgspec.Raw


_decode_queues = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_callback = msgspec.json.Decoder(Callback).decode


async def answer(read_db: TenantDb, query: BatchesQuery) -> BatchesAnswer:
    place = to_place(query.cursor, "desc")
    if place is not None and namespace_of_id(place.id) != read_db.reach.namespace:
        raise invalid("cursor", "this cursor belongs to another namespace")

    def question(session: TenantSession) -> BatchesAnswer:
        (shards,) = session.rows(_SHARDS)[0]
        found, reached, has_more = _found(session, query, place)
        return BatchesAnswer(
            batches=[batch_view(batch, shards) for batch in found],
            has_more=has_more,
            cursor=to_cursor(reached) if has_more and reached is not None else None,
            lag_ms=round(lag_ms(session), 3),
        )

    return await read_db.ask(question)


def _found(
    session: TenantSession, query: BatchesQuery, place: PageCursor | None
) -> tuple[list[Batch], PageCursor | None, bool]:
    """The batches of a page, the last one that was looked at, and whether there are more."""
    found: list[Batch] = []
    size = SLICE if session.reach.scope else query.limit + 1  # one more, to learn whether another page follows
    for _ in range(SLICES_MAX):
        rows = session.rows(_slice(query, place, size))
        for row in rows:
            if len(found) == query.limit:
                return found, place, True
            batch = _batch(*row)
            place = PageCursor("desc", row[1], row[0])
            if is_within(batch, session.reach):
                found.append(batch)
        if len(rows) < size:
            return found, place, False
    return found, place, True


def _slice(query: BatchesQuery, place: PageCursor | None, size: int) -> sa.Select[Any]:
    index = BATCHES_BY_CREATED if query.state is None else BATCHES_BY_STATE
    statement = sa.select(*_COLUMNS).with_hint(batches, f"INDEXED BY {index.name}", "sqlite").where(of_tenant(batches))
    if query.state is not None:
        statement = statement.where(batches.c.state == query.state)
    if place is not None:
        reached = sa.tuple_(sa.literal(place.created_at), sa.literal(place.id))
        statement = statement.where(sa.tuple_(batches.c.created_at, batches.c.id) < reached)
    return statement.order_by(batches.c.created_at.desc(), batches.c.id.desc()).limit(size)


def _batch(batch_id: str, created_at: str, *rest: Any) -> Batch:
    on_complete, on_success, on_failure, description, state, total, *ended, finished_at, queues = rest
    return Batch(
        id=batch_id,
        created_at=parse_rfc3339(created_at),
        on_complete=_step(on_complete),
        on_success=_step(on_success),
        on_failure=_step(on_failure),
        description=description or "",
        is_sealed=state != "open",
        total=total,
        ended=ended,  # succeeded, dead, cancelled, deleted: the order of `Batch.ended`
        finished_at=parse_rfc3339(finished_at) if finished_at else 0,
        queues=_decode_queues(queues) if queues else (),
    )


def _step(text: str | None) -> ChainStep | None:
    if text is None:
        return None
    callback = _decode_callback(text)
    return ChainStep(callback.queue, bytes(callback.payload))
