"""How far the read database is behind the shards, and how to wait until it has caught up.

The lag of an answer is an upper bound for the age of the newest change that it may lack. With every batch the mirror
writes two values per shard: when it last had all changes (`caught_up_at`), and whether it now waits at the end of the
shard's feed (`is_following`). While it waits, it renews `caught_up_at` once a second. So an old timestamp means that
the mirror or the shard is down, not that nothing changed. The lag of a shard is:

    following, renewed lately   at most DELIVERY_MS: the time a change needs from the shard to the read database
    otherwise                   the time since `caught_up_at`: behind, stopped or disconnected

The largest lag of all shards counts. It has two blind spots: a mirror or shard that stopped less than FRESH_MS ago
still looks healthy, and a replica that is behind its leader is not visible here. For certainty, clients send
`consistent=true`, which compares log indexes instead of clocks (`wait_for`).
"""

import asyncio
import time

import msgspec
import sqlalchemy as sa

from corvo.model.errors import Refusal
from corvo.model.timestamps import parse_rfc3339
from corvo.queries.cluster import GetIndex
from gateway.readdb.schema import mirror_cursors, mirror_meta
from gateway.search.database import Prepared, ReadDb, TenantDb
from gateway.search.session import StatementRunner
from gateway.shards.client import Shards
from gateway.shards.moved_jobs import ask_all

DELIVERY_MS = 100.0
FRESH_MS = 2_500.0  # two and a half heartbeats
WAIT_MS_MAX = 5_000
_LOOK_EVERY_S = 0.01

_CURSORS = Prepared(
    sa.select(mirror_cursors.c.caught_up_at, mirror_cursors.c.is_following, mirror_cursors.c.rows_total)
)
_APPLIED = Prepared(sa.select(mirror_cursors.c.shard, mirror_cursors.c.applied_index))
_META = Prepared(
    sa.select(mirror_meta.c.generation, mirror_meta.c.shards, mirror_meta.c.created_at, mirror_meta.c.published_at)
)


class Lag(msgspec.Struct, frozen=True):
    lag_ms: float
    generation: str  # changes with each rebuild
    rows_total: int  # rows written by the mirror, including earlier generations
    rebuilt_at: float  # seconds since 1970
    rebuild_ms: float  # how long it took


async def read_lag(read_db: ReadDb) -> Lag:
    return await read_db.ask(_read_lag)


def lag_ms(session: StatementRunner) -> float:
    """The lag within an open session, so that it describes the same snapshot as the answer."""
    return _read_lag(session).lag_ms


async def wait_for(read_db: ReadDb | TenantDb, at_least: dict[int, int]) -> None:
    """Waits until the read database holds every shard up to the given index; refuses if that takes too long."""
    deadline = time.monotonic() + WAIT_MS_MAX / 1000
    while True:
        applied = await read_db.ask(_applied)
        if all(applied.get(shard, 0) >= index for shard, index in at_least.items()):
            return
        if time.monotonic() >= deadline:
            raise Refusal(
                "READ_DB_UNAVAILABLE",
                f"the search database did not catch up within {WAIT_MS_MAX} ms; retry later or without consistent=true",
                retry_after_ms=1000,
            )
        await asyncio.sleep(_LOOK_EVERY_S)


async def catch_up(shards: Shards, read_db: ReadDb | TenantDb) -> None:
    """Waits until the read database holds every write that any node acknowledged before this call."""
    indexes: list[int] = await ask_all(shards, [(shard, GetIndex()) for shard in range(len(shards))])
    await wait_for(read_db, dict(enumerate(indexes)))


def _read_lag(session: StatementRunner) -> Lag:
    now = time.time_ns()
    generation, shards, created_at, published_at = session.rows(_META)[0]
    cursors = session.rows(_CURSORS)
    ages = [
        _shard_lag_ms(now, parse_rfc3339(caught_up_at or created_at), bool(is_following))
        for caught_up_at, is_following, _ in cursors
    ]
    if len(cursors) < shards:  # the mirror has not reached some shard yet
        ages.append(_shard_lag_ms(now, parse_rfc3339(created_at), False))
    begun, ended = parse_rfc3339(created_at), parse_rfc3339(published_at or created_at)
    return Lag(
        lag_ms=max(ages),
        generation=generation,
        rows_total=sum(rows_total for _, _, rows_total in cursors),
        rebuilt_at=ended / 1e9,
        rebuild_ms=(ended - begun) / 1e6,
    )


def _shard_lag_ms(now: int, caught_up_at: int, is_following: bool) -> float:
    age_ms = max(0.0, (now - caught_up_at) / 1e6)
    return min(age_ms, DELIVERY_MS) if is_following and age_ms <= FRESH_MS else age_ms


def _applied(session: StatementRunner) -> dict[int, int]:
    return dict(session.rows(_APPLIED))
