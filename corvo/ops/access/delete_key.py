"""DeleteKey: an API key is refused from now on, and forgotten.

The plan reads the key first and refuses an unknown one; a repeated deletion then has nothing to do.
"""

from typing import Any, ClassVar

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.granting import Granter, granter_of
from corvo.ops.access.fields import AccessChanged, KeyHash, checked_hash
from corvo.queries.access.keys import GetKey
from corvo.rules.access import check_grant
from corvo.state.tables import Tables


class DeleteKeyBody(Body):
    key_hash: KeyHash


class DeleteKey(Operation, tag=73):
    granter: Granter
    key_hash: str

    result: ClassVar[Any] = int

    def apply(self, tables: Tables) -> int:
        """The version without it."""
        access = tables.access
        key = access.state.keys.get(self.key_hash)
        if key is not None and self.granter.reaches(key.namespace):
            check_grant(access.state, self.granter, key, "the key")
            access.drop_key(self.key_hash)
        return access.state.version


def _plan(context: PlanContext, key_hash: str) -> Plan:
    granter = granter_of(context.principal)

    def conclude(results: list[int]) -> Answer:
        return Answer(200, AccessChanged("deleted"), results[0])

    delete = Plan([(0, DeleteKey(granter, key_hash))], conclude)
    return Plan([(0, GetKey(granter, key_hash))], lambda _: delete)


def _plan_by_body(context: PlanContext, body: DeleteKeyBody) -> Plan:
    return _plan(context, body.key_hash)


def _plan_by_path(context: PlanContext, body: None, key_hash: str) -> Plan:
    return _plan(context, checked_hash(key_hash))


ENDPOINTS = (
    Endpoint(
        name="delete_key",
        access="auth:write",
        method="DELETE",
        repeats="freely",
        path="/auth/keys",
        summary="Delete an API key; it is refused from now on",
        body=DeleteKeyBody,
        example={"key_hash": "3c" * 32},
        answers={200: AccessChanged},
        refusals=("FORBIDDEN", "KEY_NOT_FOUND"),
        plan=_plan_by_body,
        needs_principal=True,
    ),
    Endpoint(
        name="revoke_key",
        access="auth:write",
        method="DELETE",
        repeats="freely",
        path="/auth/keys/{key_hash}",
        summary="The same, for clients that cannot send a body with DELETE",
        answers={200: AccessChanged},
        refusals=("FORBIDDEN", "KEY_NOT_FOUND"),
        plan=_plan_by_path,
        needs_principal=True,
    ),
)
