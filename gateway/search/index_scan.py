"""A search that walks an index and looks at every job on its way, slice by slice, for as long as it has time.

A slice is a bounded stretch of the index; the filters that the index does not know are tried on its jobs alone. So the
walk knows at any moment how far it has come, and a search that runs out of time says so and goes on from there. Slices
begin small, for a page that fills at once, and grow while they are quick.
"""

import time
from typing import Any, NamedTuple

import sqlalchemy as sa

from gateway.readdb.schema import jobs
from gateway.search.cursor import SearchCursor
from gateway.search.database import OutOfTime, ReadSession, along
from gateway.search.filters import Condition
from gateway.search.sorts import Leg, Sort

SLICE_MIN, SLICE_MAX = 1_000, 32_000
QUICK_MS = 50
SHARE = 0.8  # of the time that is left; the rest is for reading the page that was found

Key = tuple[Any, str, str]  # value, created_at, id


class Walked(NamedTuple):
    seqs: list[int]  # of jobs that fit, in order
    keys: list[Key]
    reached: Key | None  # looked at everything up to here; None: nothing at all
    is_at_end: bool


class _Slice(NamedTuple):
    found: list[tuple[int, Key]]
    last: Key | None
    is_whole: bool  # the leg has more behind it


def walk(
    session: ReadSession, sort: Sort, place: SearchCursor | None, filters: list[Condition], wanted: int, question: str
) -> Walked:
    """At most `wanted` jobs behind the place. Raises OutOfTime when not even one slice was possible."""
    seqs: list[int] = []
    keys: list[Key] = []
    reached: Key | None = None
    end_ms = session.left_ms * (1 - SHARE)
    for leg in sort.legs_from(place):
        size = max(SLICE_MIN, wanted)
        while True:
            started = time.monotonic()
            try:
                with session.budget(session.left_ms - end_ms):
                    piece = _slice(session, sort, leg, place, filters, size, wanted - len(seqs))
            except OutOfTime:
                if reached is None:
                    raise
                return Walked(seqs, keys, reached, is_at_end=False)
            seqs += [seq for seq, _ in piece.found]
            keys += [key for _, key in piece.found]
            reached = piece.last or reached
            if len(seqs) >= wanted:
                return Walked(seqs, keys, reached, is_at_end=False)
            if piece.last is None or not piece.is_whole:
                break
            place = SearchCursor(question, *piece.last)
            if (time.monotonic() - started) * 1000 < QUICK_MS:
                size = min(size * 2, SLICE_MAX)
        place = None  # the next leg begins at its beginning
    return Walked(seqs, keys, reached, is_at_end=True)


def _slice(
    session: ReadSession,
    sort: Sort,
    leg: Leg,
    place: SearchCursor | None,
    filters: list[Condition],
    size: int,
    wanted: int,
) -> _Slice:
    if not (filters or leg.rest):
        whole = [(seq, tuple(key)) for seq, *key in session.rows(_stretch(sort, leg, place, wanted))]
        return _Slice(whole, whole[-1][1] if whole else None, len(whole) == wanted)
    *found, (count, value, created_at, job_id, _) = session.rows(
        slice_statement(sort, leg, place, filters, size, wanted)
    )
    last = (value if leg.is_by_value else leg.value, created_at, job_id) if count else None
    return _Slice([(seq, tuple(key)) for seq, *key, _ in found], last, count >= size)


def slice_statement(
    sort: Sort, leg: Leg, place: SearchCursor | None, filters: list[Condition], size: int, wanted: int
) -> sa.CompoundSelect[Any]:
    """The jobs of the slice that fit; then one row with the number of jobs in it and the key of the last one."""
    stretch = _stretch(sort, leg, place, size).cte("stretch")
    key = tuple(stretch.c)[1:]
    fits = (
        sa.select(*stretch.c)
        .join_from(stretch, jobs, jobs.c.seq == stretch.c.seq)
        .where(*filters, *leg.rest)
        .order_by(*_order(sort, leg, key))
        .limit(wanted)
        .subquery()
    )
    last = sa.select(*key).order_by(*_order(sort, leg, key, backwards=True)).limit(1).subquery()
    count = sa.select(sa.func.count()).select_from(stretch).scalar_subquery()
    one = sa.select(sa.literal_column("1").label("one")).subquery()
    return sa.union_all(
        sa.select(*fits.c, sa.literal_column("1")),
        sa.select(count, *last.c, sa.literal_column("0")).select_from(one.outerjoin(last, sa.true())),
    )


def _stretch(sort: Sort, leg: Leg, place: SearchCursor | None, size: int) -> sa.Select[Any]:
    """The next so many jobs of the leg."""
    beyond = sort.beyond_in(leg, place)
    branches = [
        along(branch.along, sa.select(jobs.c.seq, *sort.key), jobs)
        .where(*branch.conditions, *beyond)
        .order_by(*_order(sort, leg, sort.key))
        .limit(size)
        for branch in leg.branches
    ]
    if len(branches) == 1:
        return branches[0]
    every = sa.union_all(*[sa.select(branch.subquery()) for branch in branches]).subquery()
    return sa.select(every).order_by(*_order(sort, leg, tuple(every.c)[1:])).limit(size)


def _order(
    sort: Sort, leg: Leg, key: tuple[sa.ColumnElement[Any], ...], backwards: bool = False
) -> list[sa.ColumnElement[Any]]:
    return sort.directed(*(key if leg.is_by_value else key[1:]), backwards=backwards)
