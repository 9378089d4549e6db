"""Shared by the operations on a queue: its name from the path, its controls, and the call to its shard.

A setting that the queue already has changes nothing and sends no event, so a repeated request is harmless. After every
change, fetches that wait for the queue are checked again.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from corvo.endpoint import Answer, Operation, Plan, PlanContext
from corvo.model.events import EventKind
from corvo.model.job import Controls, Queue
from corvo.model.sharding import shard_of_queue
from corvo.ops.jobs.fetch import await_room
from corvo.queries.queue_names import checked_name
from corvo.state.tables import Tables

_NONE = Controls()


class QueueChanged(msgspec.Struct):
    status: str


def control(tables: Tables, name: str, kind: EventKind, data: bytes = b"", **decided: Any) -> Queue:
    """Change the controls of a queue, which is created if it does not exist. A queue without controls stores none."""
    queue = tables.find_queue(name) or tables.queue(name)
    before = queue.controls or _NONE
    after: Controls = msgspec.structs.replace(before, **decided)
    if after == before:
        return queue
    queue = tables.queue(name)
    queue.controls = None if after == _NONE else after
    if after.rate:
        tables.throttles.trim(name, after, tables.now)
        await_room(tables, queue, after)
    else:
        tables.throttles.drop(name)
    tables.wake(name)
    tables.event_log.tell(kind, "", name, data)
    return queue


def ask_queue(
    context: PlanContext, name: str, make: Callable[[str], Operation], conclude: Callable[[Any], Answer | Plan]
) -> Plan:
    """One operation on the queue's shard; `conclude` gets its result."""
    operation = make(checked_name(name))
    return Plan([(shard_of_queue(name, context.shard_count), operation)], lambda results: conclude(results[0]))
