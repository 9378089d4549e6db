"""Queue names by shard."""

from itertools import count

from corvo.model.sharding import shard_of_queue


def queues_on(shard: int, shard_count: int, wanted: int, prefix: str) -> list[str]:
    names = (f"{prefix}-{number}" for number in count())
    found: list[str] = []
    while len(found) < wanted:
        name = next(names)
        if shard_of_queue(name, shard_count) == shard:
            found.append(name)
    return found


def queues_over_all(shard_count: int, each: int, prefix: str) -> list[str]:
    """`each` queues on every shard, neighbours on different shards."""
    columns = [queues_on(shard, shard_count, each, prefix) for shard in range(shard_count)]
    return [name for row in zip(*columns, strict=True) for name in row]
