"""Lists batches, newest first, from an index in that order.

Each row becomes a `Batch` again, and `batch_view` renders it. So a batch looks the same in a list and alone.
"""

from typing import Any

import msgspec
import sqlalchemy as sa

from corvo.model.job_extras import ChainStep
from corvo.model.timestamps import parse_rfc3339
from corvo.queries.batches import batch_view
from corvo.queries.batches_list import BatchesAnswer, BatchesQuery
from corvo.rules.batches import Batch
from gateway.readdb.schema import BATCHES_BY_CREATED, BATCHES_BY_STATE, batches, mirror_meta
from gateway.search.cursor import PageCursor, to_cursor, to_place
from gateway.search.database import Prepared, ReadDb, ReadSession
from gateway.search.lag import lag_ms

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
)
_SHARDS = Prepared(sa.select(mirror_meta.c.shards))


class Callback(msgspec.Struct):
    queue: str
    payload: msgspec.Raw


_decode_callback = msgspec.json.Decoder(Callback).decode


async def answer(read_db: ReadDb, query: BatchesQuery) -> BatchesAnswer:
    page = _page(query)

    def question(session: ReadSession) -> BatchesAnswer:
        (shards,) = session.rows(_SHARDS)[0]
        rows = session.rows(page)
        has_more = len(rows) > query.limit
        found = [batch_view(_batch(*row), shards) for row in rows[: query.limit]]
        return BatchesAnswer(
            batches=found,
            has_more=has_more,
            cursor=to_cursor(PageCursor("desc", found[-1].created_at, found[-1].id)) if has_more else None,
            lag_ms=round(lag_ms(session), 3),
        )

    return await read_db.ask(question)


def _page(query: BatchesQuery) -> sa.Select[Any]:
    """Reads one row more than the page holds, to learn whether another page follows."""
    index = BATCHES_BY_CREATED if query.state is None else BATCHES_BY_STATE
    statement = sa.select(*_COLUMNS).with_hint(batches, f"INDEXED BY {index.name}", "sqlite")
    if query.state is not None:
        statement = statement.where(batches.c.state == query.state)
    place = to_place(query.cursor, "desc")
    if place is not None:
        reached = sa.tuple_(sa.literal(place.created_at), sa.literal(place.id))
        statement = statement.where(sa.tuple_(batches.c.created_at, batches.c.id) < reached)
    return statement.order_by(batches.c.created_at.desc(), batches.c.id.desc()).limit(query.limit + 1)


def _batch(batch_id: str, created_at: str, *rest: Any) -> Batch:
    on_complete, on_success, on_failure, description, state, total, *ended, finished_at = rest
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
    )


def _step(text: str | None) -> ChainStep | None:
    if text is None:
        return None
    callback = _decode_callback(text)
    return ChainStep(callback.queue, bytes(callback.payload))
