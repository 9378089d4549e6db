"""Which shard a queue or a job belongs to. The answer never changes in the life of a cluster."""

from functools import lru_cache

from corvo.errors import Refusal
from corvo.limits import JOB_ID

_FNV_OFFSET = 0x811C9DC5
_FNV_PRIME = 0x01000193


def fnv32a(text: str) -> int:
    value = _FNV_OFFSET
    for byte in text.encode():
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return value


@lru_cache(maxsize=16_384)  # a loop per byte in Python: worth remembering
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
