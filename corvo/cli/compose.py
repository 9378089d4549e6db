"""Arguments of the command line as bodies of requests. Pure.

Checked here is only what the server cannot see: that the payload is JSON, that a tag is key=value. The rest it refuses
itself, with the same sentence that every client gets.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from corvo.ops.jobs.enqueue import EnqueueBody
from corvo.queries.search import SearchBody, StateName


class BadArgument(ValueError):
    """What is wrong with an argument, in a sentence."""


def enqueue_body(
    queue: str,
    payload: str,
    *,
    priority: Literal["critical", "high", "normal"],
    max_retries: int | None,
    scheduled_at: str | None,
    tags: Sequence[str],
) -> EnqueueBody:
    try:
        msgspec.json.decode(payload)
    except msgspec.DecodeError as error:
        raise BadArgument(
            f'the payload is not JSON ({error}); quote it for the shell, such as \'{{"name": "world"}}\''
        ) from None
    given: dict[str, Any] = {}
    if max_retries is not None:
        given["max_retries"] = max_retries
    if tags:
        given["tags"] = msgspec.Raw(msgspec.json.encode(dict(map(_tag, tags))))
    return EnqueueBody(
        queue=queue,
        payload=msgspec.Raw(payload.strip().encode()),
        priority=priority,
        scheduled_at=scheduled_at,
        **given,
    )


def search_body(
    queue: str | None,
    states: Sequence[str],
    created_after: str | None,
    created_before: str | None,
    limit: int,
    order: Literal["asc", "desc"],
) -> SearchBody:
    return SearchBody(
        queue=queue,
        state=msgspec.convert(states, list[StateName]),
        created_after=created_after,
        created_before=created_before,
        limit=limit,
        order=order,
    )


def _tag(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise BadArgument(f"the tag {text!r} is not key=value")
    return key, value
