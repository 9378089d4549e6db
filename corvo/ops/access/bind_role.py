"""BindRole: give an API key one more role."""

from typing import Any, ClassVar

import msgspec

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.granting import Granter, granter_of
from corvo.ops.access.fields import AccessChanged, KeyChange, RoleName, checked_hash
from corvo.rules.access import check_change, require_key
from corvo.state.tables import Tables


class BindRoleBody(Body):
    role: RoleName


class BindRole(Operation, tag=74):
    granter: Granter
    key_hash: str
    role: str

    result: ClassVar[Any] = KeyChange

    def apply(self, tables: Tables) -> KeyChange:
        access = tables.access
        before = require_key(access.state, self.granter, self.key_hash)
        after = before
        if self.role not in before.all_roles:
            after = msgspec.structs.replace(before, roles=(*before.roles, self.role))
        check_change(access.state, self.granter, before, after)
        if after != before:
            access.put_key(after)
        return KeyChange(access.state.version, after)


def _plan(context: PlanContext, body: BindRoleBody, key_hash: str) -> Plan:
    def conclude(results: list[KeyChange]) -> Answer:
        return Answer(200, AccessChanged("ok"), results[0].version)

    return Plan([(0, BindRole(granter_of(context.principal), checked_hash(key_hash), body.role))], conclude)


ENDPOINTS = (
    Endpoint(
        name="bind_role",
        access="auth:write",
        method="POST",
        repeats="freely",
        path="/auth/keys/{key_hash}/roles",
        summary="Give an API key a role, in addition to those that it has",
        body=BindRoleBody,
        example={"role": "auditor"},
        answers={200: AccessChanged},
        refusals=("FORBIDDEN", "KEY_NOT_FOUND", "ROLE_NOT_FOUND", "TOO_MANY_ROLES"),
        plan=_plan,
        needs_principal=True,
    ),
)
