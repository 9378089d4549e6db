"""Which shard a queue or a job belongs to. The answer never changes while a cluster exists."""

from functools import lru_cache

from corvo.model.errors import Refusal
from corvo.model.limits import BATCH_ID, JOB_ID, SCHEDULE_ID, SCHEDULE_NAME

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


def find_shard_of_job(job_id: str, shard_count: int) -> int | None:
    """The shard that minted the job, read from its id; None for an id that no shard can have minted."""
    if not JOB_ID.fullmatch(job_id):
        return None
    shard = int(job_id[1:3])
    return shard if shard < shard_count else None


def shard_of_job(job_id: str, shard_count: int) -> int:
    shard = find_shard_of_job(job_id, shard_count)
    if shard is None:
        raise Refusal("JOB_NOT_FOUND", f"no job has the id {job_id[:64]!r}")
    return shard


def shard_of_batch(batch_id: str, shard_count: int) -> int:
    """The shard that counts the batch, read from its id."""
    if BATCH_ID.fullmatch(batch_id) and int(batch_id[1:3]) < shard_count:
        return int(batch_id[1:3])
    raise Refusal("BATCH_NOT_FOUND", f"no batch has the id {batch_id[:64]!r}")


def shard_of_schedule(id_or_name: str, shard_count: int) -> int:
    """The shard that keeps the schedule. It is in the id and follows from the name, so names are unique."""
    if SCHEDULE_ID.fullmatch(id_or_name):
        if int(id_or_name[1:3]) < shard_count:
            return int(id_or_name[1:3])
    elif SCHEDULE_NAME.fullmatch(id_or_name):
        return fnv32a(id_or_name) % shard_count
    raise Refusal("SCHEDULE_NOT_FOUND", f"no schedule has the id or name {id_or_name[:64]!r}")
