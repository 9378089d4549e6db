"""Queue names: checked when they come from a path, and looked up on their shard."""

import re
from typing import Any, ClassVar

from corvo.endpoint import Read
from corvo.model.errors import Refusal, invalid
from corvo.model.job import Queue
from corvo.model.limits import QUALIFIED_NAME
from corvo.model.namespaces import shown_name
from corvo.state.tables import Tables

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class KnowsQueue(Read, tag=1056):
    """Asked before a deletion starts. A deletion that is repeated after a crash must not fail because the queue is
    gone, nor delete a new queue of that name."""

    name: str

    result: ClassVar[Any] = int

    def read(self, tables: Tables) -> int:
        """The time up to which its jobs are to be deleted."""
        require_queue(tables, self.name)
        return tables.now


def require_queue(tables: Tables, name: str) -> Queue:
    queue = tables.find_queue(name)
    if queue is None:
        raise Refusal(
            "QUEUE_NOT_FOUND", f"no queue has the name {shown_name(name)!r}; a queue is created by its first job"
        )
    return queue


def checked_name(name: str) -> str:
    """A queue's name from the path of a request, qualified with its namespace."""
    if not QUALIFIED_NAME.fullmatch(name):
        shown = _CONTROL.sub("?", shown_name(name)[:100])
        raise invalid(
            "name",
            f"{shown!r} is not a valid queue name: 1 to 200 characters of letters, digits and ._:/- (a slash as %2F)",
        )
    return name
