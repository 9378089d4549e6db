"""Replacing a piece of the program by a wrong one, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any

from shards.raft.core import Raft


@contextmanager
def replaced(owner: Any, **news: Any) -> Iterator[None]:
    olds = {name: owner.__dict__[name] for name in news}
    for name, new in news.items():
        setattr(owner, name, new)
    try:
        yield
    finally:
        for name, old in olds.items():
            setattr(owner, name, old)


def sends_now(owner: Any, name: str, kind: type) -> AbstractContextManager[None]:
    """Messages of this kind no longer wait for the disk."""
    original = owner.__dict__[name]

    @wraps(original)
    def hasty(self: Any, *args: Any) -> Any:
        result = original(self, *args)
        outbox = self.outbox if isinstance(self, Raft) else self.raft.outbox
        outbox.send_now += [message for message in outbox.send_after if isinstance(message, kind)]
        outbox.send_after = [message for message in outbox.send_after if not isinstance(message, kind)]
        return result

    return replaced(owner, **{name: hasty})
