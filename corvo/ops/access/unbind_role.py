"""UnbindRole: take a role from an API key. A role that is not bound to it changes nothing."""

from typing import Any, ClassVar

import msgspec

from corvo.endpoint import Answer, Endpoint, Operation, Plan, PlanContext
from corvo.model.granting import Granter, granter_of
from corvo.ops.access.fields import AccessChanged, KeyChange, checked_hash
from corvo.rules.access import check_change, require_key
from corvo.state.tables import Tables


class UnbindRole(Operation, tag=75):
    granter: Granter
    key_hash: str
    role: str

    result: ClassVar[Any] = KeyChange

    def apply(self, tables: Tables) -> KeyChange:
        access = tables.access
        before = require_key(access.state, self.granter, self.key_hash)
        after = msgspec.structs.replace(before, roles=tuple(role for role in before.roles if role != self.role))
        check_change(access.state, self.granter, before, after)
        if after != before:
            access.put_key(after)
        return KeyChange(access.state.version, after)


def _plan(context: PlanContext, body: None, key_hash: str, role: str) -> Plan:
    def conclude(results: list[KeyChange]) -> Answer:
        return Answer(200, AccessChanged("deleted"), results[0].version)

    return Plan([(0, UnbindRole(granter_of(context.principal), checked_hash(key_hash), role))], conclude)


ENDPOINTS = (
    Endpoint(
        name="unbind_role",
        access="auth:write",
        method="DELETE",
        repeats="freely",
        path="/auth/keys/{key_hash}/roles/{role}",
        summary="Take a role from an API key",
        answers={200: AccessChanged},
        refusals=("FORBIDDEN", "KEY_NOT_FOUND"),
        plan=_plan,
        needs_principal=True,
    ),
)
