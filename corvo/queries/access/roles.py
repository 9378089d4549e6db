"""Roles: the built-in ones, then the custom ones by name (linearizable)."""

from typing import Any, ClassVar

from corvo.endpoint import Answer, Endpoint, Plan, PlanContext, Query, Read
from corvo.model.access import ROLES
from corvo.model.access_records import RoleRecord
from corvo.queries.access.views import RoleView, role_view
from corvo.state.tables import Tables


class ListRoles(Read, tag=1073):
    result: ClassVar[Any] = list[RoleRecord]

    def read(self, tables: Tables) -> list[RoleRecord]:
        return list(tables.access.state.roles.values())


_BUILT_IN = [RoleView(name=name, permissions=list(permissions), built_in=True) for name, permissions in ROLES.items()]


def _plan(context: PlanContext, body: None) -> Plan:
    def conclude(results: list[list[RoleRecord]]) -> Answer:
        return Answer(200, [*_BUILT_IN, *map(role_view, sorted(results[0], key=lambda role: role.name))])

    return Plan([(0, ListRoles())], conclude)


QUERIES: tuple[type[Query], ...] = (ListRoles,)

ENDPOINTS = (
    Endpoint(
        name="roles",
        access="roles:read",
        method="GET",
        path="/auth/roles",
        summary="Roles and their permissions, the built-in ones first",
        answers={200: list[RoleView]},
        plan=_plan,
    ),
)
