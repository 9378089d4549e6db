"""UpdateKey: enable, disable or rename an API key, change its role, scope or expiry. Fields that are not given stay."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.access_records import ApiKey
from corvo.model.errors import invalid
from corvo.model.granting import Granter, granter_of
from corvo.model.job import Moment
from corvo.ops.access.fields import (
    Expiry,
    KeyChange,
    KeyName,
    RoleName,
    Scope,
    checked_hash,
    parse_expiry,
    parse_scope,
)
from corvo.queries.access.views import KeyView, key_view
from corvo.rules.access import check_change, require_key
from corvo.state.tables import Tables


class UpdateKeyBody(Body):
    name: KeyName | None = None
    enabled: Annotated[bool | None, Meta(description="false: the key is refused until it is enabled again")] = None
    role: RoleName | None = None
    queue_scope: Scope | UnsetType = UNSET
    expires_at: Expiry | UnsetType = UNSET


class NewKeyTerms(msgspec.Struct, array_like=True, frozen=True):
    """Fields of `ApiKey`, None for those that stay."""

    name: str | None = None
    is_enabled: bool | None = None
    role: str | None = None
    queue_scope: tuple[str, ...] | None = None
    expires_at: Moment | None = None

    def applied_to(self, key: ApiKey) -> ApiKey:
        given = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        return msgspec.structs.replace(key, **given)


class UpdateKey(Operation, tag=71):
    granter: Granter
    key_hash: str
    terms: NewKeyTerms

    result: ClassVar[Any] = KeyChange

    def apply(self, tables: Tables) -> KeyChange:
        access = tables.access
        before = require_key(access.state, self.granter, self.key_hash)
        after = self.terms.applied_to(before)
        check_change(access.state, self.granter, before, after)
        if after != before:
            access.put_key(after)
        return KeyChange(access.state.version, after)


def _plan(context: PlanContext, body: UpdateKeyBody, key_hash: str) -> Plan:
    terms = NewKeyTerms(
        body.name,
        body.enabled,
        body.role,
        None if body.queue_scope is UNSET else parse_scope(body.queue_scope),
        None if body.expires_at is UNSET else parse_expiry(body.expires_at, context.clock_ns()),
    )
    if terms == NewKeyTerms():
        raise invalid("name", "nothing to change: give name, enabled, role, queue_scope or expires_at")

    def conclude(results: list[KeyChange]) -> Answer:
        return Answer(200, key_view(results[0].key), results[0].version)

    return Plan([(0, UpdateKey(granter_of(context.principal), checked_hash(key_hash), terms))], conclude)


ENDPOINTS = (
    Endpoint(
        name="update_key",
        access="auth:write",
        method="PUT",
        repeats="freely",
        path="/auth/keys/{key_hash}",
        summary="Enable, disable or rename an API key, change its role, scope or expiry; what is not given stays",
        body=UpdateKeyBody,
        example={"enabled": False},
        answers={200: KeyView},
        refusals=("FORBIDDEN", "KEY_NOT_FOUND", "ROLE_NOT_FOUND"),
        plan=_plan,
        needs_principal=True,
    ),
)
