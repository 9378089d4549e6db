"""PutRole: create a custom role, or change its permissions for all who have it."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.access import Permission
from corvo.model.access_records import RoleRecord
from corvo.model.errors import Refusal, invalid
from corvo.model.granting import Granter, granter_of
from corvo.model.limits import ROLE_BYTES_MAX, ROLES_MAX
from corvo.ops.access.fields import AccessChanged, RoleName
from corvo.rules.access import check_role_name
from corvo.state.tables import Tables


class PutRoleBody(Body):
    name: RoleName
    permissions: Annotated[tuple[Permission, ...], Meta(description="at most 4 KiB as JSON")]


class PutRole(Operation, tag=76):
    granter: Granter
    name: str
    permissions: tuple[Permission, ...]

    result: ClassVar[Any] = int

    def apply(self, tables: Tables) -> int:
        """The version with it."""
        access, what = tables.access, f"the role {self.name}"
        before = access.state.roles.get(self.name)
        if before is not None:
            self.granter.require_permissions(before.permissions, what)
        self.granter.require_permissions(self.permissions, what)
        if before is None:
            if len(access.state.roles) >= ROLES_MAX:
                raise Refusal("TOO_MANY_ROLES", f"a cluster has at most {ROLES_MAX} custom roles; delete some first")
            access.put_role(RoleRecord(self.name, self.permissions, tables.now))
        elif before.permissions != self.permissions:
            access.put_role(RoleRecord(self.name, self.permissions, before.created_at, tables.now))
        return access.state.version


def _plan(context: PlanContext, body: PutRoleBody) -> Plan:
    check_role_name(body.name)
    if len(msgspec.json.encode(body.permissions)) > ROLE_BYTES_MAX:
        raise invalid("permissions", f"at most {ROLE_BYTES_MAX} bytes as JSON")

    def conclude(results: list[int]) -> Answer:
        return Answer(200, AccessChanged("ok"), results[0])

    return Plan([(0, PutRole(granter_of(context.principal), body.name, body.permissions))], conclude)


ENDPOINTS = (
    Endpoint(
        name="put_role",
        access="roles:write",
        method="POST",
        repeats="freely",
        path="/auth/roles",
        summary="Create a custom role, or change its permissions",
        body=PutRoleBody,
        example={"name": "auditor", "permissions": [{"resource": "jobs", "actions": ["read", "list"]}]},
        answers={200: AccessChanged},
        refusals=("FORBIDDEN", "TOO_MANY_ROLES"),
        plan=_plan,
        needs_principal=True,
    ),
)
