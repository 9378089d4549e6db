"""The filters of a search as conditions on a row of `jobs`, the scope of a key among them. Pure.

Every value is a bound parameter, tag keys included. Timestamps are formatted with nine decimals, as stored, before they
are compared; `_after` and `_before` are exclusive. Substring functions are used that have no wildcards.
"""

from typing import Any

import sqlalchemy as sa

from corvo.model.errors import invalid
from corvo.model.job import PRIORITY_NAMES
from corvo.model.reach import Reach
from corvo.model.sealed_text import MARK_TEXT
from corvo.model.timestamps import parse_rfc3339, to_rfc3339
from corvo.queries.search import SearchBody
from gateway.readdb.schema import job_errors, jobs
from gateway.search.jq import condition as jq_condition
from gateway.search.session import Position
from gateway.search.tags import has_tag
from gateway.search.tenancy import in_scope

Condition = sa.ColumnElement[bool]

PAYLOAD_JSON: sa.ColumnElement[Any] = sa.literal_column("jobs.payload_json")  # PostgreSQL only
_END_OF_TEXT = "\U0010ffff"
_MOMENTS = ("scheduled", "started", "completed", "expire")
_NAMES = ("worker_id", "unique_key", "batch_id", "chain_id", "parent_id")


def residual(body: SearchBody, reach: Reach, is_postgresql: bool = False) -> list[Condition]:
    """All filters except queue, state and creation time, which the indexes by creation cover."""
    conditions = in_scope(jobs.c.queue, reach) if body.queue is None else []
    conditions += [jobs.c[name] == getattr(body, name) for name in _NAMES if getattr(body, name) is not None]
    if body.priority is not None:
        conditions.append(jobs.c.priority == PRIORITY_NAMES.index(body.priority))
    if body.job_id_prefix is not None:
        conditions += with_prefix(body.job_id_prefix)
    for name in _MOMENTS:
        conditions += span(body, name)
    if body.attempt_min is not None:
        conditions.append(jobs.c.attempt >= body.attempt_min)
    if body.attempt_max is not None:
        conditions.append(jobs.c.attempt <= body.attempt_max)
    if body.has_errors is not None:
        conditions.append(_has_error() if body.has_errors else sa.not_(_has_error()))
    conditions += [has_tag(key, value, is_postgresql) for key, value in body.tags.items()]
    if body.payload_contains is not None:
        conditions += [_holds(jobs.c.payload, body.payload_contains), _IS_READABLE]
    if body.error_contains is not None:
        conditions.append(_has_error(_holds(job_errors.c.error, body.error_contains)))
    if body.payload_jq is not None:
        payload = PAYLOAD_JSON if is_postgresql else jobs.c.payload
        conditions += [jq_condition(body.payload_jq, payload, is_postgresql), _IS_READABLE]
    return conditions


def span(body: SearchBody, name: str) -> list[Condition]:
    """The filters `{name}_after` and `{name}_before`."""
    column = jobs.c[f"{name}_at"]
    after, before = f"{name}_after", f"{name}_before"
    conditions: list[Condition] = []
    if getattr(body, after) is not None:
        conditions.append(column > _moment(after, getattr(body, after)))
    if getattr(body, before) is not None:
        conditions.append(column < _moment(before, getattr(body, before)))
    return conditions


def with_prefix(prefix: str) -> list[Condition]:
    return [jobs.c.id >= prefix, jobs.c.id < prefix + _END_OF_TEXT]


def _has_error(*conditions: Condition) -> Condition:
    of_job = (job_errors.c.job_id == jobs.c.id, job_errors.c.shard == jobs.c.shard)
    return sa.exists(sa.select(sa.literal_column("1")).where(*of_job, *conditions).correlate(jobs))


def _holds(column: sa.ColumnElement[Any], needle: str) -> Condition:
    return Position(column, sa.literal(needle)) > 0


# What is encrypted matches nothing, not even by chance.
_IS_READABLE: Condition = Position(jobs.c.payload, sa.literal(MARK_TEXT)) == 0


def _moment(field: str, text: str) -> str:
    try:
        return to_rfc3339(parse_rfc3339(text))
    except ValueError as error:
        raise invalid(field, str(error)) from None
