"""Requests about records of access, planned and applied as a gateway and shard 0 do it."""

from typing import Any

import msgspec

from corvo.endpoint import Answer, Operation, Plan, Read
from corvo.model.access import ROLES, Permission, Principal
from corvo.model.access_records import ApiKey
from corvo.model.errors import Refused
from corvo.model.json_input import decode_body
from corvo.ops import ENDPOINTS as WRITES
from corvo.queries import ENDPOINTS as READS
from tests.support.builders import an_asking
from tests.support.machine import Machine

BY_NAME = {endpoint.name: endpoint for endpoint in (*WRITES, *READS)}


def a_principal(
    role: str | tuple[Permission, ...] = "admin", namespace: str = "default", scope: tuple[str, ...] = ()
) -> Principal:
    permissions = ROLES[role] if isinstance(role, str) else role
    roles = (role,) if isinstance(role, str) else ("custom",)
    name = f"{roles[0]} of {namespace}"
    return Principal(
        name=name,
        kind="key",
        roles=roles,
        permissions=permissions,
        namespace=namespace,
        home=namespace,
        queue_scope=scope,
    )


ROOT = a_principal()
ACME = a_principal(namespace="acme")
KEY_MANAGER = a_principal((Permission("auth", ("*",)), Permission("jobs", ("*",))))  # may give what it has: jobs
MAILER = a_principal(scope=("mail.*",))


class Desk(Machine):
    """Shard 0, and somebody who asks it."""

    def __init__(self) -> None:
        super().__init__()
        self._dice = 0

    def dice(self, size: int) -> bytes:
        self._dice += 1
        return self._dice.to_bytes(size)

    def ask(self, name: str, /, *parameters: str, by: Principal = ROOT, at: int | None = None, **body: Any) -> Answer:
        """The answer, or its refusal raised. `body` may be the query."""
        endpoint = BY_NAME[name]
        by.require(endpoint.access)
        asked = None
        if endpoint.body is not None:
            asked = decode_body(msgspec.json.Decoder(endpoint.body), msgspec.json.encode(body))
        elif endpoint.query is not None:
            asked = msgspec.convert(body, endpoint.query)
        assert endpoint.plan is not None
        self.now = self.now if at is None else at
        context = msgspec.structs.replace(
            an_asking(4, now=self.now).within(by.namespace).acting_for(by), dice=self.dice
        )
        outcome: Answer | Plan = endpoint.plan(context, asked, *parameters)
        while isinstance(outcome, Plan):
            outcome = outcome.conclude([self._result(shard, ask) for shard, ask in outcome.calls])
        return outcome

    def _result(self, shard: int, ask: Any) -> Any:
        assert shard == 0, "the records of access are on shard 0"
        if isinstance(ask, Operation):
            result = self.one(ask)
            if isinstance(result, Refused):
                raise result.to_refusal()
            return result
        assert isinstance(ask, Read)
        return ask.read(self.tables)

    # What tests look at

    @property
    def version(self) -> int:
        return self.tables.access.state.version

    def key(self, key_hash: str) -> ApiKey:
        return self.tables.access.state.keys[key_hash]

    @property
    def key_names(self) -> list[str]:
        return [key.name for key in self.tables.access.state.keys.values()]

    def make_key(self, name: str = "mailer", by: Principal = ROOT, **body: Any) -> str:
        """Its hash."""
        made: str = self.ask("create_key", by=by, name=name, **body).body.key_hash
        return made

    def make_role(self, name: str = "auditor", *permissions: Permission, by: Principal = ROOT) -> None:
        permissions = permissions or (Permission("queues", ("read",)),)
        self.ask("put_role", by=by, name=name, permissions=permissions)


def a_desk(*namespaces: str) -> Desk:
    desk = Desk()
    for namespace in namespaces:
        desk.ask("create_namespace", name=namespace)
    return desk
