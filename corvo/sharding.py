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


def shard_of_job(job_id: str, shard_count: int) -> int:
    """The shard that minted the job, read from its id. An id that no shard can have minted is refused as unknown."""
    if JOB_ID.fullmatch(job_id):
        shard = int(job_id[1:3])
        if shard < shard_count:
            return shard
    raise Refusal("JOB_NOT_FOUND", f"no job has the id {job_id[:64]!r}")
