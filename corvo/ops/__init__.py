"""The register of operations: every way in which the state can change.

To add one: write its file, add its class here, write its test. Numbers are for ever: a retired one is listed in
`RETIRED` and never given out again.
"""

import functools
import operator
from typing import Any

import msgspec

from corvo.ops.jobs import ack, cancel, enqueue, fail, fetch, heartbeat
from corvo.ops.operation import Endpoint, Operation
from corvo.ops.upkeep import name_node, promote, reclaim

OPERATIONS: tuple[type[Operation], ...] = (
    enqueue.Enqueue,
    fetch.Fetch,
    ack.Ack,
    fail.Fail,
    heartbeat.Heartbeat,
    cancel.Cancel,
    promote.Promote,
    reclaim.Reclaim,
    name_node.NameNode,
)
RETIRED: frozenset[int] = frozenset()

ENDPOINTS: tuple[Endpoint, ...] = (
    *enqueue.ENDPOINTS,
    *fetch.ENDPOINTS,
    *ack.ENDPOINTS,
    *fail.ENDPOINTS,
    *heartbeat.ENDPOINTS,
    *cancel.ENDPOINTS,
)

AnyOperation: Any = functools.reduce(operator.or_, OPERATIONS)
decode_operation = msgspec.msgpack.Decoder(AnyOperation).decode
