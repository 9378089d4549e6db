"""A search that scans an index in slices and checks every job, within a time limit.

A slice is a bounded range of the index. The filters that the index does not cover are checked on the jobs of the slice.
So the scan always knows its position: a search that runs out of time returns a cursor, and the next request resumes
there. Slices start small, so that an easy page is fast, and double while they are quick.
"""

import time
from typing import Any, NamedTuple

import sqlalchemy as sa

from gateway.readdb.schema import jobs
from gateway.search.cursor import SearchCursor
from gateway.search.database import OutOfTime, TenantSession, along
from gateway.search.filters import Condition
from gateway.search.sorts import Leg, Sort

SLICE_MIN, SLICE_MAX = 1_000, 32_000
QUICK_MS = 50
SHARE = 0.8  # of the remaining time; the rest is for reading the rows of the page

Key = tuple[Any, str, str]  # value, created_at, id


class Walked(NamedTuple):
    seqs: list[int]  # matching jobs, in order
    keys: list[Key]
    reached: Key | None  # everything up to here was checked; None: nothing was
    is_at_end: bool


class _Slice(NamedTuple):
    found: list[tuple[int, Key]]
    last: Key | None
    is_whole: bool  # the slice is full, so the leg may go on


def walk(
    session: TenantSession, sort: Sort, place: SearchCursor | None, filters: list[Condition], wanted: int, question: str
) -> Walked:
    """At most `wanted` jobs after the cursor. Raises OutOfTime if not even one slice was possible."""
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
        place = None  # the cursor lies in the first leg; the others start at their beginning
    return Walked(seqs, keys, reached, is_at_end=True)


def _slice(
    session: TenantSession,
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
    """The matching jobs of the slice; then one row with the size of the slice and the key of its last job."""
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
    """The next `size` jobs of the leg."""
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
