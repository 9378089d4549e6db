"""Selective filters, each with its own index. They yield few candidates, which are then filtered and sorted.

A source returns the `seq` of at most FEW_MAX jobs, a superset of all matches. It returns None if there are more. The
search uses the first source that returns a list and applies all filters to it. If every source returns None, the search
scans the index of its sort order (`index_scan.py`): many matches fill the page soon, and rare ones may exceed the time
limit.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import sqlalchemy as sa

from corvo.model.reach import Reach
from corvo.queries.search import SearchBody
from gateway.readdb.schema import (
    BY_BATCH,
    BY_CHAIN,
    BY_COMPLETED,
    BY_EXPIRE,
    BY_FINGERPRINT,
    BY_ID,
    BY_PARENT,
    BY_STARTED,
    BY_UNIQUE,
    job_errors,
    jobs,
)
from gateway.search import documents
from gateway.search.database import TenantSession, along, listed
from gateway.search.filters import Condition, span, with_prefix
from gateway.search.sorts import Branch, by_creation
from gateway.search.tenancy import in_scope, of_tenant

FEW_MAX = 10_000
# A shorter prefix names a shard, not a job; the index by creation serves it better.
SELECTIVE_PREFIX_MIN = 16
_BY_NAME = {"batch_id": BY_BATCH, "chain_id": BY_CHAIN, "parent_id": BY_PARENT, "unique_key": BY_UNIQUE}
_BY_SPAN = {"started": BY_STARTED, "completed": BY_COMPLETED, "expire": BY_EXPIRE}

# With numbers(…) as `seqs`. A text index does not select a namespace, so this does.
AMONG: Condition = sa.and_(jobs.c.seq.in_(listed("seqs")), of_tenant(jobs))
Source = Callable[[TenantSession], list[int] | None]


def few(session: TenantSession, body: SearchBody) -> list[int] | None:
    for source in _sources(body, session.reach):
        found = source(session)
        if found is not None:
            return found
    return None


def _sources(body: SearchBody, reach: Reach) -> Iterator[Source]:
    """The most selective come first."""
    if body.job_id_prefix is not None and len(body.job_id_prefix) >= SELECTIVE_PREFIX_MIN:
        yield _along([Branch(BY_ID, [of_tenant(jobs), *with_prefix(body.job_id_prefix)])])
    for name, index in _BY_NAME.items():
        if getattr(body, name) is not None:
            yield _along([Branch(str(index.name), [of_tenant(jobs), jobs.c[name] == getattr(body, name)])])
    for key, value in body.tags.items():
        yield partial(documents.tagged, key=key, value=value, at_most=FEW_MAX)
    match = documents.match(body)
    if match:
        yield partial(documents.matching, expression=match, at_most=FEW_MAX)
    for name, index in _BY_SPAN.items():
        if conditions := span(body, name):
            yield _along([Branch(str(index.name), [of_tenant(jobs), *conditions])])
    if body.has_errors or body.error_contains is not None:
        yield _with_errors
    if body.sort != "created_at" and (body.queue or body.state or body.created_after or body.created_before):
        yield _along(by_creation(body, reach))


def _along(branches: list[Branch]) -> Source:
    def source(session: TenantSession) -> list[int] | None:
        seqs: list[int] = []
        for index, conditions in branches:
            seqs += _first(session, along(index, sa.select(jobs.c.seq), jobs).where(*conditions))
            if len(seqs) > FEW_MAX:
                return None
        return seqs

    return source


def _with_errors(session: TenantSession) -> list[int] | None:
    if session.reach.scope:  # a job may have failed in another queue before it was moved into the scope
        return None
    failed = (
        along(str(BY_FINGERPRINT.name), sa.select(job_errors.c.job_id, job_errors.c.shard).distinct(), job_errors)
        .where(of_tenant(job_errors))
        .limit(FEW_MAX + 1)
        .subquery()
    )
    is_job = sa.and_(jobs.c.id == failed.c.job_id, jobs.c.shard == failed.c.shard)
    names = session.rows(sa.select(sa.func.count()).select_from(failed))[0][0]
    if names > FEW_MAX:
        return None
    return _first(session, sa.select(jobs.c.seq).join_from(failed, jobs, is_job))


def _first(session: TenantSession, statement: sa.Select[Any]) -> list[int]:
    return [seq for (seq,) in session.rows(statement.where(*in_scope(jobs.c.queue, session.reach)).limit(FEW_MAX + 1))]
