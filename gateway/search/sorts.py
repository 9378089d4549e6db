"""Sort orders of a search: the indexes that each order scans, and the conditions for "after this cursor". Pure.

A sort orders the jobs by (value, created_at, id), all in one direction. Jobs without a value come last in both
directions. A scan consists of legs, one after the other, each on its own index:

    created_at            one leg, by creation
    started_at, …         jobs that have the timestamp, by it; then the others, by creation
    priority, attempt     jobs above or below the default value, by it; those with the default, by creation

A leg by creation has one branch for each requested (queue, state, priority), and the branches are merged. So a page is
read from the end of an index and never sorted. SQLite has no statistics and does not choose this plan reliably, so each
branch names its index.
"""

from typing import Any, NamedTuple, cast

import sqlalchemy as sa

from corvo.model.errors import invalid
from corvo.model.job import PRIORITY_NAMES, Priority
from corvo.model.lifecycle import STATE_NAMES
from corvo.model.reach import Reach
from corvo.queries.search import SearchBody
from gateway.readdb.schema import (
    BY_ATTEMPT,
    BY_COMPLETED,
    BY_CREATED,
    BY_DUE,
    BY_FAILED,
    BY_PRIORITY,
    BY_QUEUE,
    BY_STARTED,
    BY_STATE,
    TRIED_AGAIN,
    URGENT,
    jobs,
)
from gateway.search.cursor import SearchCursor
from gateway.search.filters import Condition, span
from gateway.search.tenancy import in_scope, of_queue, of_tenant

_NOTHING: sa.ColumnElement[Any] = sa.null()
_MOMENTS = {"started_at": BY_STARTED, "completed_at": BY_COMPLETED, "failed_at": BY_FAILED, "scheduled_at": BY_DUE}
_NUMBERS = ("priority", "attempt")


class Branch(NamedTuple):
    """The jobs that match the conditions, in the order of an index."""

    along: str
    conditions: list[Condition]


class Leg(NamedTuple):
    branches: list[Branch]
    rest: list[Condition]  # conditions of this leg that its indexes do not cover
    is_by_value: bool = False  # else by creation
    value: int | None = None  # if not by value: the value that all matching jobs of the leg share


class Sort:
    def __init__(self, body: SearchBody, reach: Reach) -> None:
        self.is_ascending = body.order == "asc"
        self._body = body
        self._reach = reach
        self._name = body.sort
        self._value = _NOTHING if body.sort == "created_at" else jobs.c[body.sort]

    @property
    def key(self) -> tuple[sa.ColumnElement[Any], ...]:
        return self._value.label("value"), jobs.c.created_at, jobs.c.id

    def order(self, columns: sa.FromClause = jobs) -> list[sa.ColumnElement[Any]]:
        """The order over all legs."""
        value = [] if self._name == "created_at" else [columns.c[self._name]]
        nulls_last = [column.is_(None) for column in value if self._name in _MOMENTS]
        return [*nulls_last, *self.directed(*value, columns.c.created_at, columns.c.id)]

    def directed(self, *columns: sa.ColumnElement[Any], backwards: bool = False) -> list[sa.ColumnElement[Any]]:
        return [column.asc() if self.is_ascending != backwards else column.desc() for column in columns]

    def beyond(self, place: SearchCursor | None) -> list[Condition]:
        """Jobs after the cursor, in any leg."""
        if place is None:
            return []
        born_later = self._passes((jobs.c.created_at, jobs.c.id), (place.created_at, place.id))
        if self._name == "created_at":
            return [born_later]
        if place.value is None:
            return [self._value.is_(None), born_later]
        later = self._passes((self._value, jobs.c.created_at, jobs.c.id), (place.value, place.created_at, place.id))
        return [sa.or_(later, self._value.is_(None)) if self._name in _MOMENTS else later]

    def beyond_in(self, leg: Leg, place: SearchCursor | None) -> list[Condition]:
        """Jobs of one leg after the cursor, as conditions that its index supports."""
        if place is None:
            return []
        if leg.is_by_value:
            return [
                self._passes((self._value, jobs.c.created_at, jobs.c.id), (place.value, place.created_at, place.id))
            ]
        return [self._passes((jobs.c.created_at, jobs.c.id), (place.created_at, place.id))]

    def legs_from(self, place: SearchCursor | None) -> list[Leg]:
        """The leg that holds the cursor, and the legs after it."""
        legs = self._legs()
        return legs if place is None else legs[self._leg_of(place, len(legs)) :]

    def check(self, place: SearchCursor | None) -> SearchCursor | None:
        """Refuses a cursor whose value has the wrong type: it was altered."""
        if place is not None:
            kinds: tuple[type, ...] = (type(None),)
            if self._name in _MOMENTS:
                kinds = (str, type(None))
            elif self._name in _NUMBERS:
                kinds = (int,)
            if not isinstance(place.value, kinds) or (isinstance(place.value, int) and abs(place.value) > 2**62):
                raise invalid("cursor", "invalid cursor; send the cursor of the previous page unchanged")
        return place

    def _legs(self) -> list[Leg]:
        match self._name:
            case "created_at":
                return [self._by_creation()]
            case "priority":
                legs = [
                    self._by_value(BY_PRIORITY, _literally(URGENT)),
                    self._by_creation(jobs.c.priority == Priority.NORMAL.value, value=Priority.NORMAL.value),
                ]
                return legs if self.is_ascending else legs[::-1]
            case "attempt":
                legs = [
                    self._by_creation(jobs.c.attempt == 0, value=0),
                    self._by_creation(jobs.c.attempt == 1, value=1),
                    self._by_value(BY_ATTEMPT, _literally(TRIED_AGAIN)),
                ]
                return legs if self.is_ascending else legs[::-1]
            case moment:
                return [
                    self._by_value(_MOMENTS[moment], self._value.is_not(None)),
                    self._by_creation(self._value.is_(None)),
                ]

    def _leg_of(self, place: SearchCursor, legs: int) -> int:
        value = place.value
        if self._name == "created_at":
            return 0
        if value is None or isinstance(value, str):
            return 0 if isinstance(value, str) else 1
        if self._name == "priority":
            number = 0 if value < Priority.NORMAL else 1
        else:
            number = max(0, min(value, 2))
        return number if self.is_ascending else legs - 1 - number

    def _by_creation(self, *rest: Condition, value: int | None = None) -> Leg:
        return Leg(by_creation(self._body, self._reach), list(rest), value=value)

    def _by_value(self, index: sa.Index, condition: Condition) -> Leg:
        held = [of_tenant(jobs), *in_scope(jobs.c.queue, self._reach)]
        return Leg([Branch(str(index.name), [*held, condition])], named(self._body), is_by_value=True)

    def _passes(self, columns: tuple[sa.ColumnElement[Any], ...], reached: tuple[Any, ...]) -> Condition:
        key, place = sa.tuple_(*columns), sa.tuple_(*[sa.literal(value) for value in reached])
        return key > place if self.is_ascending else key < place


def by_creation(body: SearchBody, reach: Reach) -> list[Branch]:
    """Disjoint sets of jobs. Each has an index that yields it by creation.

    The scope of a key is checked here, not on the jobs of a slice: a cursor must not name a job outside it."""
    born = span(body, "created")
    states = list(dict.fromkeys(body.state))
    if body.queue is not None:
        queue = of_queue(jobs.c.queue)
        return [
            Branch(str(BY_QUEUE.name), [queue, jobs.c.state == state, jobs.c.priority == priority, *born])
            for state in states or STATE_NAMES
            for priority in _priorities(body)
        ]
    held = [of_tenant(jobs), *in_scope(jobs.c.queue, reach)]
    if states:
        return [Branch(str(BY_STATE.name), [*held, jobs.c.state == state, *born]) for state in states]
    return [Branch(str(BY_CREATED.name), [*held, *born])]


def _priorities(body: SearchBody) -> list[int]:
    return list(range(len(PRIORITY_NAMES))) if body.priority is None else [PRIORITY_NAMES.index(body.priority)]


def named(body: SearchBody) -> list[Condition]:
    """Queue, state and creation time as conditions, for an index that does not cover them."""
    conditions = span(body, "created")
    if body.queue is not None:
        conditions.append(of_queue(jobs.c.queue))
    if body.state:
        conditions.append(sa.or_(*[jobs.c.state == state for state in dict.fromkeys(body.state)]))
    return conditions


def _literally(condition: str) -> Condition:
    """Inline SQL, as in the index: with a parameter, SQLite cannot tell that the partial index applies."""
    return cast(Condition, sa.text(condition))
