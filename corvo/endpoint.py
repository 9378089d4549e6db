"""The types of operations, queries and endpoints.

An operation is a struct with a number, fields and `apply`. Its number identifies it in the log and never changes. The
same file holds its endpoints: each has a route, a body, and `plan`, which turns a checked body into operations for
shards, and their results into one answer. All of it is pure; the gateway does the I/O.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from corvo.model import sharding
from corvo.model.access import NOBODY, Principal
from corvo.model.errors import Refusal
from corvo.model.ids import Minter, repeatable_minter
from corvo.model.limits import BULK_ID
from corvo.model.namespaces import DEFAULT, id_ending
from corvo.model.quotas import Room, StoredAmounts
from corvo.model.reach import Reach
from corvo.state.tables import Tables

T = TypeVar("T")
K = TypeVar("K")


class Operation(msgspec.Struct, array_like=True):
    """A change to the state of one shard.

    `apply` sees only the state and its time (`tables.now`). It either changes the state and returns a result, or raises
    `Refusal` and has changed nothing. Operations on several items refuse each item on its own.
    """

    result: ClassVar[Any] = None  # type of the result, for the decoder at the other end

    def apply(self, tables: Tables) -> Any:
        raise NotImplementedError


Steps = Generator[Callable[[Tables], Any], Any, T]


class Compound(Operation):
    """An operation of many steps, each of which sees the effects and cascades of the steps before it.

    `steps` yields each step as a function of the tables. The engine runs the step and its cascades, then sends back the
    step's result, or throws its `Refusal`. What `steps` returns is the result of the operation.
    """

    def steps(self, tables: Tables) -> Steps[Any]:
        raise NotImplementedError


class Query(msgspec.Struct, array_like=True):
    """A question to one shard, answered without a log entry."""

    result: ClassVar[Any] = None


class Read(Query):
    """A linearizable query: its answer reflects every change that was acknowledged before it was sent."""

    def read(self, tables: Tables) -> Any:
        raise NotImplementedError


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """A public JSON body. Strict: an unknown field is refused, because it is usually a typing mistake."""


class Rooms(Protocol):
    """What namespaces with quotas have left."""

    def room(self, namespace: str, shard: int) -> Room | None:
        """For new jobs on this shard. None: the namespace has no quotas."""

    def everywhere(self, namespace: str) -> Room | None:
        """The same, with all shards counted as others."""


def no_dice(size: int) -> bytes:
    raise NotImplementedError("this context was made without dice")


class PlanContext(msgspec.Struct, frozen=True):
    """Everything that `plan` needs besides the request. Its methods know the ids of one namespace: an id of another is
    refused as one that does not exist, and so is an id that is hidden from a key with a scope."""

    shard_count: int
    payload_bytes_max: int
    mint: Minter
    clock_ns: Callable[[], int]
    namespace: str = DEFAULT
    id_ending: str = ""
    scope: tuple[str, ...] = ()  # of the principal (`corvo/model/reach.py`)
    hidden: frozenset[str] = frozenset()  # ids in this request that are outside the scope, or do not exist
    dice: Callable[[int], bytes] = no_dice  # as many random bytes, from the system
    principal: Principal = NOBODY  # only for endpoints with `needs_principal`
    rooms: Rooms | None = None  # None: no namespace has quotas

    def within(self, namespace: str, scope: tuple[str, ...] = ()) -> "PlanContext":
        return msgspec.structs.replace(
            self, mint=self.mint.within(namespace), namespace=namespace, id_ending=id_ending(namespace), scope=scope
        )

    def acting_for(self, principal: Principal) -> "PlanContext":
        return msgspec.structs.replace(self, principal=principal)

    def repeating(self, key: bytes, *asked: bytes) -> "PlanContext":
        """For a request with this `Idempotency-Key`: all ids follow from it."""
        return msgspec.structs.replace(self, mint=repeatable_minter(key, *asked, namespace=self.namespace))

    def hiding(self, ids: frozenset[str]) -> "PlanContext":
        return msgspec.structs.replace(self, hidden=ids) if ids else self

    @property
    def reach(self) -> Reach:
        return Reach(self.namespace, self.scope)

    def room(self, shard: int) -> Room | None:
        return None if self.rooms is None else self.rooms.room(self.namespace, shard)

    def require_room(self, jobs: int, payload_bytes: int) -> None:
        """For jobs whose shards cannot refuse them: as far as it is known here."""
        room = None if self.rooms is None else self.rooms.everywhere(self.namespace)
        if room is not None:
            room.require(StoredAmounts(), StoredAmounts(jobs, payload_bytes))

    def is_job_id(self, text: str) -> bool:
        """Whether a job of this namespace can have this id. Says nothing about whether one has it."""
        return sharding.find_shard_of_job(text, self.shard_count, self.id_ending) is not None

    def find_shard_of_job(self, job_id: str) -> int | None:
        if self.hidden and job_id in self.hidden:
            return None
        return sharding.find_shard_of_job(job_id, self.shard_count, self.id_ending)

    def shard_of_job(self, job_id: str) -> int:
        if self.hidden and job_id in self.hidden:
            raise sharding.unknown_job(job_id)
        return sharding.shard_of_job(job_id, self.shard_count, self.id_ending)

    def shard_of_batch(self, batch_id: str) -> int:
        if batch_id in self.hidden:
            raise sharding.unknown_batch(batch_id)
        return sharding.shard_of_batch(batch_id, self.shard_count, self.id_ending)

    def shard_of_schedule(self, id_or_name: str) -> int:
        if id_or_name in self.hidden:
            raise sharding.unknown_schedule(id_or_name)
        return sharding.shard_of_schedule(id_or_name, self.shard_count, self.id_ending)

    def check_bulk_id(self, bulk_id: str) -> None:
        match = BULK_ID.fullmatch(bulk_id)
        if match is None or (match[1] or "") != self.id_ending or bulk_id in self.hidden:
            raise Refusal("BULK_NOT_FOUND", f"no bulk operation has the id {bulk_id[:128]!r}")


class Answer(NamedTuple):
    status: int
    body: Any  # a struct, or None for an empty body
    version: int = 0  # of the records of access: the gateway has it before the client has the answer
    headers: tuple[tuple[bytes, bytes], ...] = ()  # beyond those that every answer has


class Plan(NamedTuple):
    calls: list[tuple[int, Operation | Query]]  # shard, what to ask of it
    # (results in the order of the calls) → the answer, or another plan when more must be asked.
    conclude: Callable[[list[Any]], "Answer | Plan"]
    wait_s: float = 0.0  # a pause before the calls
    # The answer when the shards refuse or take too long: the request itself is done, and this round only waits for its
    # effects on other shards.
    instead: Answer | None = None


Repeats = Literal["freely", "by key", "never"]


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One route of the HTTP API.

    Derived from these: the router, OpenAPI, the reference page, the client (`corvo/cli/derive_client.py`), plain
    commands (`corvo/cli/commands/derived.py`), and the route tables of the tests.
    """

    method: str
    path: str  # below /api/v1, with {parameters}
    aliases: tuple[str, ...] = ()  # further paths, under which other clients know it
    summary: str
    body: type[msgspec.Struct] | None = None
    body_optional: bool = False  # an empty body means the body's defaults
    example: dict[str, Any] | None = None  # a body that is accepted, as JSON; every endpoint with a body has one
    query: type[msgspec.Struct] | None = None  # parameters after the `?`
    answers: dict[int, Any]  # status → type of the answer
    media: str = "application/json"  # of the answers; for a stream, of its events
    refusals: tuple[str, ...] = ()  # codes beyond those that every route can give
    plan: Callable[..., Plan] | None = (
        None  # (context, body, *path parameters); None: composed by the gateway, or a read of read.db
    )
    name: str  # the gateway's handler where there is no plan; the client's method
    access: str  # the permission that it needs, as resource:action (`corvo/model/access.py`); `open`: none
    needs_principal: bool = False  # its plan depends on who asks (`PlanContext.principal`)
    wait_s: float = 0.0  # how long the server may delay the answer on purpose, beyond a `timeout` in the body
    # Whether a client that got no answer may send it again: `freely`; `by key`, if both carry one `Idempotency-Key`;
    # `never`, because the effect would happen again. A GET changes nothing, whatever stands here.
    repeats: Repeats = "never"


def spread(items: Sequence[T], shard_of: Callable[[T], K | None]) -> dict[K, list[int]]:
    """Item numbers grouped by shard, each group in the order of the request; an item without a shard is left out."""
    groups: dict[K, list[int]] = {}
    for number, item in enumerate(items):
        shard = shard_of(item)
        if shard is not None:
            groups.setdefault(shard, []).append(number)
    return groups


def gather(unasked: list[Any], groups: dict[int, list[int]], results: list[list[Any]]) -> list[Any]:
    """The reverse of `spread`: the results of all shards in the order of the request. `unasked` holds the results of
    items for which no shard was asked."""
    gathered = list(unasked)
    for numbers, group in zip(groups.values(), results, strict=True):
        for number, result in zip(numbers, group, strict=True):
            gathered[number] = result
    return gathered
