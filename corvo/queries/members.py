"""Changes of the cluster's membership. They go to every shard's leader, because each shard is a Raft group."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Body, Endpoint, Plan, PlanContext, Query
from corvo.model.errors import Refusal, invalid
from corvo.runtime.addresses import check_reachable

NodeId = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z",
        description="1 to 63 characters of letters, digits and `._-`, beginning with a letter or digit",
    ),
]


class GroupMembers(msgspec.Struct, array_like=True):
    """The membership of one shard's group. `outgoing` is not empty during a change of voters."""

    config_id: int = 0
    voters: list[str] = []
    outgoing: list[str] = []
    learners: list[str] = []


class AddNode(Query, tag=1030):
    """Add a node as a learner; it votes once it has caught up. Answered when the change is committed."""

    result: ClassVar[Any] = GroupMembers

    node_id: str
    address: str


class RemoveNode(Query, tag=1031):
    """Remove a node. Answered when the change is committed."""

    result: ClassVar[Any] = GroupMembers

    node_id: str


class MoveLeader(Query, tag=1032):
    """Transfer the shard's leadership to a node. Answered when the node leads, or when the transfer failed."""

    result: ClassVar[Any] = GroupMembers

    node_id: str


class JoinBody(Body):
    node_id: NodeId
    address: Annotated[str | None, Meta(description="`host:port` at which other nodes reach its first shard")] = None
    addr: Annotated[str | None, Meta(description="the same; one of the two is needed")] = None


class RemoveBody(Body):
    node_id: NodeId


class TransferBody(Body):
    node_id: NodeId
    shard: int | None = None  # all shards when left out


class GroupView(msgspec.Struct):
    shard: int
    voters: list[str]
    learners: list[str]
    is_changing: bool


class MembersView(msgspec.Struct):
    node_id: str
    groups: list[GroupView]


def _plan_join(context: PlanContext, body: JoinBody) -> Plan:
    if body.address is None and body.addr is None:
        raise invalid("address", "missing: the host:port at which other nodes reach this one")
    if body.address is not None and body.addr is not None and body.address != body.addr:
        raise invalid("addr", "differs from `address`; give one of them")
    address = body.address or body.addr or ""
    try:
        check_reachable(address)
    except ValueError as error:
        raise Refusal("BAD_REQUEST", f"address: {error}") from None
    return _ask_all(context, body.node_id, AddNode(body.node_id, address))


def _plan_remove(context: PlanContext, body: RemoveBody) -> Plan:
    return _ask_all(context, body.node_id, RemoveNode(body.node_id))


def _plan_transfer(context: PlanContext, body: TransferBody) -> Plan:
    shards = list(range(context.shard_count)) if body.shard is None else [body.shard]
    if not 0 <= shards[0] < context.shard_count:
        raise Refusal(
            "BAD_REQUEST", f"shard: there is no shard {body.shard}; the last one is {context.shard_count - 1}"
        )
    return _ask(body.node_id, MoveLeader(body.node_id), shards)


def _ask_all(context: PlanContext, node_id: str, ask: Query) -> Plan:
    return _ask(node_id, ask, list(range(context.shard_count)))


def _ask(node_id: str, ask: Query, shards: list[int]) -> Plan:
    def conclude(results: list[GroupMembers]) -> Answer:
        groups = [
            GroupView(shard, members.voters, members.learners, bool(members.outgoing))
            for shard, members in zip(shards, results, strict=True)
        ]
        return Answer(200, MembersView(node_id, groups))

    return Plan([(shard, ask) for shard in shards], conclude)


QUERIES: tuple[type[Query], ...] = (AddNode, RemoveNode, MoveLeader)

ENDPOINTS = (
    Endpoint(
        name="cluster_join",
        access="cluster:write",
        method="POST",
        path="/cluster/join",
        summary="Add a node to every shard's group: it receives the log, and votes once it has caught up",
        body=JoinBody,
        example={"node_id": "node-2", "address": "db-2:9400"},
        answers={200: MembersView},
        refusals=("MEMBERSHIP_REFUSED",),
        plan=_plan_join,
    ),
    Endpoint(
        name="cluster_remove",
        access="cluster:write",
        method="POST",
        path="/cluster/remove",
        summary="Remove a node from every shard's group",
        body=RemoveBody,
        example={"node_id": "node-2"},
        answers={200: MembersView},
        refusals=("MEMBERSHIP_REFUSED",),
        plan=_plan_remove,
    ),
    Endpoint(
        name="cluster_transfer",
        access="cluster:write",
        method="POST",
        path="/cluster/transfer",
        summary="Transfer the leadership of one shard, or of all, to a node",
        body=TransferBody,
        example={"node_id": "node-2", "shard": 1},
        answers={200: MembersView},
        refusals=("MEMBERSHIP_REFUSED",),
        plan=_plan_transfer,
    ),
)
