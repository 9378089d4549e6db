"""DeleteRole: a custom role, and its bindings to keys, which must not come back with a new role of the same name.

The plan reads the roles first and refuses an unknown one; a repeated deletion then has nothing to do.
"""

from typing import Any, ClassVar

import msgspec

from corvo.endpoint import Answer, Endpoint, Operation, Plan, PlanContext
from corvo.model.access_records import RoleRecord
from corvo.model.errors import Refusal
from corvo.model.granting import Granter, granter_of
from corvo.ops.access.fields import AccessChanged
from corvo.queries.access.roles import ListRoles
from corvo.rules.access import check_role_name
from corvo.state.tables import Tables


class DeleteRole(Operation, tag=77):
    granter: Granter
    name: str

    result: ClassVar[Any] = int

    def apply(self, tables: Tables) -> int:
        """The version without it."""
        access = tables.access
        role = access.state.roles.get(self.name)
        if role is None:
            return access.state.version
        self.granter.require_permissions(role.permissions, f"the role {self.name}")
        if any(key.role == self.name for key in access.state.keys.values()):
            raise Refusal("ROLE_IN_USE", f"{self.name} is the role of API keys; give them another one first")
        if self.name in access.state.sso.group_role_mappings.values():
            raise Refusal("ROLE_IN_USE", f"the sign-on settings map a group to {self.name}; change them first")
        for key in [key for key in access.state.keys.values() if self.name in key.roles]:
            rest = tuple(role for role in key.roles if role != self.name)
            access.put_key(msgspec.structs.replace(key, roles=rest))
        access.drop_role(self.name)
        return access.state.version


def _plan(context: PlanContext, body: None, role: str) -> Plan:
    check_role_name(role)

    def delete(results: list[list[RoleRecord]]) -> Plan:
        if all(known.name != role for known in results[0]):
            raise Refusal("ROLE_NOT_FOUND", f"there is no custom role {role[:100]!r}")
        return Plan([(0, DeleteRole(granter_of(context.principal), role))], conclude)

    def conclude(results: list[int]) -> Answer:
        return Answer(200, AccessChanged("deleted"), results[0])

    return Plan([(0, ListRoles())], delete)


ENDPOINTS = (
    Endpoint(
        name="delete_role",
        access="roles:delete",
        method="DELETE",
        repeats="freely",
        path="/auth/roles/{role}",
        summary="Delete a custom role, and take it from all keys",
        answers={200: AccessChanged},
        refusals=("FORBIDDEN", "ROLE_IN_USE", "ROLE_NOT_FOUND"),
        plan=_plan,
        needs_principal=True,
    ),
)
