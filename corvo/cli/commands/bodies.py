"""Arguments of the command line as bodies of requests. Pure.

Checked here is only what the server cannot see: that the payload is JSON, that a tag is key=value. The rest it refuses
itself, with the same sentence that every client gets.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from corvo.model.limits import JOB_ID
from corvo.ops.batches.add_to_batch import BatchBody
from corvo.ops.bulk.begin_bulk import BulkBody
from corvo.ops.job_terms import StepBody
from corvo.ops.jobs.enqueue import EnqueueBody
from corvo.ops.schedules.create_schedule import CreateScheduleBody
from corvo.ops.schedules.update_schedule import UpdateScheduleBody
from corvo.queries.search import SearchBody, StateName


class BadArgument(ValueError):
    """What is wrong with an argument, in a sentence."""


def enqueue_body(
    queue: str,
    payload: str,
    *,
    priority: Literal["critical", "high", "normal"],
    max_retries: int | None,
    tags: Sequence[str],
    depends_on: Sequence[str],
    **conditions: str | int | None,
) -> EnqueueBody:
    """`conditions` are fields of the body by their own names, None where nothing was said."""
    return EnqueueBody(
        queue=queue,
        payload=_json(payload),
        priority=priority,
        depends_on=list(depends_on),
        **_given(max_retries=max_retries, tags=_tags(tags), **conditions),
    )


def schedule_body(
    name: str,
    queue: str,
    cron: str,
    payload: str,
    *,
    timezone: str,
    priority: Literal["critical", "high", "normal"],
    max_retries: int | None,
    tags: Sequence[str],
    unique_key: str,
    catch_up: Literal["skip", "last", "all"],
    catch_up_max: int | None,
) -> CreateScheduleBody:
    return CreateScheduleBody(
        name=name,
        queue=queue,
        cron=cron,
        timezone=timezone,
        payload=_json(payload),
        priority=priority,
        unique_key=unique_key,
        catch_up=catch_up,
        **_given(max_retries=max_retries, tags=_tags(tags), catch_up_max=catch_up_max),
    )


def new_terms(payload: str | None, tags: Sequence[str], **terms: str | int | None) -> UpdateScheduleBody:
    """What is None stays as it is."""
    new_payload = None if payload is None else _json(payload)
    return UpdateScheduleBody(**_given(payload=new_payload, tags=_tags(tags), **terms))


def batch_body(
    on_complete: str | None, on_success: str | None, on_failure: str | None, payload: str, description: str
) -> BatchBody:
    """One payload for all callbacks: each of them is told which one it is."""
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
        state=msgspec.convert(states, list[StateName]), tags=dict(map(_searched_tag, tags)), **_given(**filters)
    )


def bulk_body(
    fields: dict[str, Any], filter_text: str | None, flags: dict[str, Any], piped: str | None
) -> BulkBody | None:
    """Which jobs: a filter as JSON, to which the flags add, or what came through a pipe. None: nothing came."""
    job_ids = None if piped is None else ids_in(piped)
    if job_ids == []:
        return None
    which = {"filter": _filter(filter_text, flags)} if job_ids is None else {"job_ids": job_ids}
    try:
        return msgspec.convert({**_given(**fields), **which}, BulkBody)
    except msgspec.ValidationError as error:
        raise BadArgument(str(error)) from None


def _filter(text: str | None, flags: dict[str, Any]) -> dict[str, Any]:
    try:
        wanted = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError as error:
        raise BadArgument(f"--filter is not JSON ({error}); quote it for the shell") from None
    if not isinstance(wanted, dict):
        raise BadArgument('--filter is no object, such as {"queue": "mail", "state": ["dead"]}')
    return {**wanted, **flags}


def ids_in(text: str) -> list[str]:
    """The ids in what `corvo search` prints, as JSON or as a table, or in a plain list with one a line."""
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        found = [words[0] for line in text.splitlines() if (words := line.split()) and JOB_ID.fullmatch(words[0])]
    if isinstance(found, dict):
        found = found.get("jobs", [])
    ids = [one.get("id") if isinstance(one, dict) else one for one in found] if isinstance(found, list) else []
    if not isinstance(found, list) or not all(isinstance(one, str) for one in ids):
        raise BadArgument("what came on standard input holds no ids of jobs; what does the search print by itself?")
    return list(dict.fromkeys(map(str, ids)))


def _json(payload: str) -> msgspec.Raw:
    try:
        msgspec.json.decode(payload)
    except msgspec.DecodeError as error:
        raise BadArgument(
            f'the payload is not JSON ({error}); quote it for the shell, such as \'{{"name": "world"}}\''
        ) from None
    return msgspec.Raw(payload.strip().encode())


def _tags(tags: Sequence[str]) -> msgspec.Raw | None:
    return msgspec.Raw(msgspec.json.encode(dict(map(_tag, tags)))) if tags else None


def _given(**fields: Any) -> dict[str, Any]:
    """What has no value is left to the server's default."""
    return {name: value for name, value in fields.items() if value is not None}


def _searched_tag(text: str) -> tuple[str, str | int | float | bool]:
    """KEY=VALUE is a text, KEY:=VALUE what JSON makes of it. A key that ends in a colon needs KEY::=VALUE."""
    key, value = _tag(text)
    if not key.endswith(":"):
        return key, value
    try:
        return key[:-1], msgspec.json.decode(value, type=str | int | float | bool)
    except msgspec.DecodeError:
        raise BadArgument(f"the tag {text!r} is no number, text in quotes, true or false behind the :=") from None


def _tag(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise BadArgument(f"the tag {text!r} is not key=value")
    return key, value
