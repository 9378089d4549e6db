"""Which shard a queue or a job belongs to. The answer never changes while a cluster exists.

These functions take names and ids of any namespace: the state machine uses them. Requests use the methods of
`PlanContext` (`corvo/endpoint.py`), which know only the ids of their own namespace.
"""

import re
from functools import lru_cache

from corvo.model.errors import Refusal
from corvo.model.limits import BATCH_ID, JOB_ID, SCHEDULE_ID, SCHEDULE_NAME
from corvo.model.namespaces import shown_name

_FNV_OFFSET = 0x811C9DC5
_FNV_PRIME = 0x01000193


def fnv32a(text: str) -> int:
    value = _FNV_OFFSET
    for byte in text.encode():
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return value


@lru_cache(maxsize=16_384)  # the hash is a Python loop over bytes: slow enough to cache
def shard_of_queue(queue: str, shard_count: int) -> int:
    return fnv32a(queue) % shard_count


def find_shard_of_id(pattern: "re.Pattern[str]", text: str, shard_count: int, ending: str | None) -> int | None:
    """The shard that minted an id; None for an id that no shard can have minted in the namespace with this ending.
    Without an ending, ids of every namespace are known."""
    match = pattern.fullmatch(text)
    if match is None or (ending is not None and (match[1] or "") != ending):
        return None
    shard = int(text[1:3])
    return shard if shard < shard_count else None


def find_shard_of_job(job_id: str, shard_count: int, ending: str | None = None) -> int | None:
    return find_shard_of_id(JOB_ID, job_id, shard_count, ending)


def shard_of_job(job_id: str, shard_count: int, ending: str | None = None) -> int:
    shard = find_shard_of_job(job_id, shard_count, ending)
    if shard is None:
        raise unknown_job(job_id)
    return shard


def unknown_job(job_id: str) -> Refusal:
    return Refusal("JOB_NOT_FOUND", f"no job has the id {job_id[:128]!r}")


def shard_of_batch(batch_id: str, shard_count: int, ending: str | None = None) -> int:
    """The shard that counts the batch."""
    shard = find_shard_of_id(BATCH_ID, batch_id, shard_count, ending)
    if shard is None:
        raise unknown_batch(batch_id)
    return shard


def unknown_batch(batch_id: str) -> Refusal:
    return Refusal("BATCH_NOT_FOUND", f"no batch has the id {batch_id[:128]!r}")


def shard_of_schedule(id_or_name: str, shard_count: int, ending: str | None = None) -> int:
    """The shard that keeps the schedule. It is in the id and follows from the name, so names are unique."""
    shard = find_shard_of_id(SCHEDULE_ID, id_or_name, shard_count, ending)
    if shard is None and SCHEDULE_NAME.fullmatch(id_or_name):
        shard = fnv32a(id_or_name) % shard_count
    if shard is None:
        raise unknown_schedule(id_or_name)
    return shard


def unknown_schedule(id_or_name: str) -> Refusal:
    return Refusal("SCHEDULE_NOT_FOUND", f"no schedule has the id or name {shown_name(id_or_name)[:256]!r}")
