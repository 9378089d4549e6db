"""Arguments of the command line as bodies of requests. Pure.

Only what the server cannot see is checked here: that the payload is JSON, that a tag is key=value. The server refuses
the rest, with the sentence that every client gets.
"""

from collections.abc import Sequence
from typing import Any, get_type_hints

import msgspec

from corvo.client.bodies import (
    BatchBody,
    Body,
    BulkBody,
    CreateScheduleBody,
    EnqueueBody,
    SearchBody,
    StepBody,
    UpdateScheduleBody,
)
from corvo.client.routes import ROUTES
from corvo.model.json_input import validation_refusal


class BadArgument(ValueError):
    """A sentence about a wrong argument."""


def body_of(endpoint: str, fields: dict[str, Any]) -> Body | None:
    """The body of an endpoint from what was typed: numbers and words may come as text."""
    kind = ROUTES[endpoint].body
    if kind is None:
        return None
    try:
        return msgspec.convert(fields, kind, strict=False)
    except msgspec.ValidationError as error:
        raise BadArgument(validation_refusal(error, kind).message) from None


def enqueue_body(
    queue: str,
    payload: str,
    *,
    priority: str,
    max_retries: int | None,
    tags: Sequence[str],
    tags_json: str | None = None,
    depends_on: Sequence[str],
    **conditions: str | int | None,
) -> EnqueueBody:
    """`conditions` are other fields of the body by name; None leaves a field to the server's default."""
    return EnqueueBody(
        queue=queue,
        payload=_json(payload),
        depends_on=list(depends_on),
        **_given(priority=tier(priority), max_retries=max_retries, tags=_tags(tags, tags_json), **conditions),
    )


def schedule_body(
    name: str,
    queue: str,
    cron: str,
    payload: str,
    *,
    timezone: str,
    priority: str,
    max_retries: int | None,
    tags: Sequence[str],
    tags_json: str | None = None,
    unique_key: str,
    catch_up: str,
    catch_up_max: int | None,
) -> CreateScheduleBody:
    return CreateScheduleBody(
        name=name,
        queue=queue,
        cron=cron,
        timezone=timezone,
        payload=_json(payload),
        unique_key=unique_key,
        **_given(
            priority=tier(priority),
            catch_up=catch_up,
            max_retries=max_retries,
            tags=_tags(tags, tags_json),
            catch_up_max=catch_up_max,
        ),
    )


def new_terms(
    payload: str | None, tags: Sequence[str], tags_json: str | None = None, **terms: str | int | None
) -> UpdateScheduleBody:
    """Fields that are None stay unchanged."""
    new_payload = None if payload is None else _json(payload)
    return UpdateScheduleBody(**_given(payload=new_payload, tags=_tags(tags, tags_json), **terms))


def batch_body(
    on_complete: str | None, on_success: str | None, on_failure: str | None, payload: str, description: str
) -> BatchBody:
    """One payload for all callbacks: the server adds which one it is."""
    raw = _json(payload)

    def step(queue: str | None) -> StepBody | None:
        return None if queue is None else StepBody(queue, raw)

    return BatchBody(
        on_complete=step(on_complete),
        on_success=step(on_success),
        on_failure=step(on_failure),
        description=description,
    )


def search_body(states: Sequence[str], tags: Sequence[str], **filters: Any) -> SearchBody:
    return SearchBody(
        state=msgspec.convert(states, get_type_hints(SearchBody)["state"]),
        tags=dict(map(_searched_tag, tags)),
        **_given(**filters),
    )


def bulk_body(fields: dict[str, Any], **which: Any) -> BulkBody:
    """`which` is a `filter` or `job_ids`."""
    try:
        return msgspec.convert({**_given(**fields), **which}, BulkBody)
    except msgspec.ValidationError as error:
        raise BadArgument(str(error)) from None


def bulk_filter(text: str | None, flags: dict[str, Any]) -> dict[str, Any]:
    """A filter as JSON; flags replace its fields of the same name."""
    try:
        wanted = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError as error:
        raise BadArgument(f"--filter is not JSON ({error}); quote it for the shell") from None
    if not isinstance(wanted, dict):
        raise BadArgument('--filter is no object, such as {"queue": "mail", "state": ["dead"]}')
    return {**wanted, **flags}


def tier(priority: str | None) -> Any:
    """The server has three tiers; `low` is served with `normal`, as in the original."""
    return "normal" if priority == "low" else priority


def _json(payload: str) -> msgspec.Raw:
    try:
        msgspec.json.decode(payload)
    except msgspec.DecodeError as error:
        raise BadArgument(
            f'the payload is not JSON ({error}); quote it for the shell, such as \'{{"name": "world"}}\''
        ) from None
    return msgspec.Raw(payload.strip().encode())


def _tags(tags: Sequence[str], tags_json: str | None) -> msgspec.Raw | None:
    """--tags first, each --tag over it."""
    if not tags and tags_json is None:
        return None
    try:
        all_tags = {} if tags_json is None else msgspec.json.decode(tags_json, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise BadArgument(f'--tags is no JSON object such as {{"team": "billing"}}: {error}') from None
    return msgspec.Raw(msgspec.json.encode({**all_tags, **dict(map(_tag, tags))}))


def _given(**fields: Any) -> dict[str, Any]:
    """None leaves a field to the server's default."""
    return {name: value for name, value in fields.items() if value is not None}


def _searched_tag(text: str) -> tuple[str, str | int | float | bool]:
    """KEY=VALUE is text, KEY:=VALUE is JSON. A key that ends in a colon needs KEY::=VALUE."""
    key, value = _tag(text)
    if not key.endswith(":"):
        return key, value
    try:
        return key[:-1], msgspec.json.decode(value, type=str | int | float | bool)
    except msgspec.DecodeError:
        raise BadArgument(f"the tag {text!r} has no JSON number, string, true or false after the :=") from None


def _tag(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise BadArgument(f"the tag {text!r} is not key=value")
    return key, value
