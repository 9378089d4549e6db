"""The table of each queue's throughput per minute. Its records are those of `corvo.state.minutes`."""

import sqlalchemy as sa

from corvo.model.job import Minute
from corvo.model.namespaces import namespace_of
from gateway.readdb.seed_tables import INTEGER, integer, metadata, tenant, text

queue_minutes = sa.Table(
    "queue_minutes",
    metadata,
    text("queue", primary_key=True),
    sa.Column("minute", INTEGER, primary_key=True, autoincrement=False),  # since 1970
    integer("shard"),
    tenant(),
    integer("enqueued"),
    integer("completed"),
    integer("failed"),  # attempts
    integer("dead"),
    sqlite_with_rowid=False,  # clustered by key: the minutes of a queue lie together, in order
)

_AMOUNTS = ("enqueued", "completed", "failed", "dead")
BY_MINUTE = sa.Index(
    "idx_queue_minutes_minute",
    queue_minutes.c.namespace,
    queue_minutes.c.minute,
    *(queue_minutes.c[name] for name in _AMOUNTS),
)

MINUTE_COLUMNS = ("queue", "minute", "shard", "namespace", *_AMOUNTS)


def minute_row(shard: int, minute: Minute) -> tuple[str | int, ...]:
    namespace = namespace_of(minute.queue)
    return (
        *(minute.queue, minute.minute, shard, namespace),
        *(minute.enqueued, minute.completed, minute.failed, minute.died),
    )
