"""The scale of health, worked out from what the replicas say. Pure; everything that shows health asks here.

    healthy       every replica of every shard answers and keeps up, and so does the read database
    degraded      jobs are served; something is missing: a node, a replica that keeps up, the read database
    unavailable   this node cannot serve some shards: they have no leader, or no process here

It is the view of one node: another one may reach more, or less.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from corvo.queries.cluster import HealthReport, ShardStatus
from gateway.shards.replicas import Group, StatusOrError, leader_of

LAG_MS_MAX = 10_000.0  # of the read database; beyond, lists are too old
REPLICA_LAG_MAX = 10_000  # entries; a voter further behind does not keep up


def health_of(
    owns: Sequence[StatusOrError], groups: Sequence[Group], lag_ms: float | None, hung: Sequence[str] = ()
) -> HealthReport:
    """`owns` are the replicas of this node by shard, `groups` all that each of them reaches, `lag_ms` is the read
    database's (None: it cannot be read), and `hung` says which processes here give no heartbeat."""
    unserved = list(_unserved(owns, groups))
    fault = read_db_fault(lag_ms)
    missing = [*_silent_nodes(groups), *_late_voters(groups), *([fault] if fault else []), *hung]
    if unserved:
        return HealthReport("unavailable", unserved + missing)
    return HealthReport("degraded", missing) if missing else HealthReport("healthy", [])


def read_db_fault(lag_ms: float | None) -> str:
    """Empty when lists may be believed."""
    if lag_ms is None:
        return "read.db cannot be read"
    return f"read.db is {lag_ms:.0f} ms behind" if lag_ms > LAG_MS_MAX else ""


def _unserved(owns: Sequence[StatusOrError], groups: Sequence[Group]) -> Iterator[str]:
    """A sentence for each reason, with all shards that have it."""
    shards: dict[str, list[int]] = defaultdict(list)
    for shard, (own, group) in enumerate(zip(owns, groups, strict=True)):
        if isinstance(own, BaseException):
            shards["no answer from the process on this node"].append(shard)
        elif not own.leader:
            shards[_why_leaderless(own, group)].append(shard)
    for reason, which in shards.items():
        yield f"{_shards(which)}: {reason}"


def _why_leaderless(own: ShardStatus, group: Group) -> str:
    voters = own.members.voters or [own.node_id]
    answer = sum(isinstance(group.get(voter), ShardStatus) for voter in voters)
    if answer > len(voters) // 2:
        return "no leader"
    return f"no quorum, {answer} of {len(voters)} voters {'answers' if answer == 1 else 'answer'}"


def _silent_nodes(groups: Sequence[Group]) -> Iterator[str]:
    silent: dict[str, list[int]] = defaultdict(list)
    asked: dict[str, int] = defaultdict(int)
    for shard, group in enumerate(groups):
        for node_id, outcome in group.items():
            asked[node_id] += 1
            if isinstance(outcome, BaseException):
                silent[node_id].append(shard)
    for node_id, which in sorted(silent.items()):
        where = "" if len(which) == asked[node_id] else f" for {_shards(which)}"
        yield f"{node_id} does not answer{where}"


def _late_voters(groups: Sequence[Group]) -> Iterator[str]:
    """A learner is expected to be behind: it does not vote yet."""
    for shard, group in enumerate(groups):
        leader = leader_of(group)
        if leader is None:
            continue
        for node_id, outcome in sorted(group.items()):
            if isinstance(outcome, ShardStatus) and node_id in leader.members.voters:
                behind = leader.commit_index - outcome.applied_index
                if behind > REPLICA_LAG_MAX:
                    yield f"{node_id} is {behind} entries behind for shard {shard}"


def _shards(numbers: Iterable[int]) -> str:
    """`shard 3`, `shards 0, 2`, `shards 0-3, 7`."""
    rows: list[list[int]] = []
    for number in numbers:
        if rows and number == rows[-1][-1] + 1:
            rows[-1].append(number)
        else:
            rows.append([number])
    parts = [str(row[0]) if len(row) == 1 else f"{row[0]}{'-' if len(row) > 2 else ', '}{row[-1]}" for row in rows]
    return f"shard{'s' if len(rows) > 1 or len(rows[0]) > 1 else ''} {', '.join(parts)}"
