"""CreateKey: create an API key, or give one that a client chose other terms.

The key is made here, in the plan, and shown once in the answer. Only its SHA-256 goes to the shard, so neither the log
nor the disk ever holds a key.
"""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.access_records import ApiKey
from corvo.model.api_key_text import KEY_BYTES, checked_given, hash_of, key_text, shown_part
from corvo.model.errors import Refusal
from corvo.model.granting import Granter, granter_of
from corvo.model.namespaces import checked_namespace
from corvo.ops.access.fields import (
    Expiry,
    GivenKey,
    KeyChange,
    KeyCreated,
    KeyName,
    RoleName,
    Scope,
    key_created,
    parse_expiry,
    parse_scope,
)
from corvo.rules.access import check_change, make_room_for_key, require_active
from corvo.state.tables import Tables


class CreateKeyBody(Body):
    name: KeyName
    key: GivenKey = None
    namespace: Annotated[str | None, Meta(description="default: the one that the request acts in")] = None
    role: RoleName = "readonly"
    queue_scope: Scope = None
    expires_at: Expiry = None
    enabled: bool = True


class CreateKey(Operation, tag=70):
    granter: Granter
    key: ApiKey  # without what is decided here: its times, its maker, its custom roles

    result: ClassVar[Any] = KeyChange

    def apply(self, tables: Tables) -> KeyChange:
        access, granter = tables.access, self.granter
        before = access.state.keys.get(self.key.key_hash)
        if before is not None and not granter.reaches(before.namespace):
            raise Refusal("KEY_EXISTS", "this key belongs to another namespace; choose another key")
        if not granter.reaches(self.key.namespace):
            raise Refusal("FORBIDDEN", f"{granter.name or 'this key'} manages the keys of {granter.reach} only")
        require_active(access.state, self.key.namespace)
        kept = before or ApiKey("", "", "", created_at=tables.now, created_by=granter.name)
        after = msgspec.structs.replace(
            self.key,
            roles=kept.roles,
            created_at=kept.created_at,
            created_by=kept.created_by,
            last_used_at=kept.last_used_at,
            replaces=kept.replaces,
        )
        check_change(access.state, granter, before, after)
        if before is None or before.namespace != after.namespace:
            make_room_for_key(tables, after.namespace)
        if after != before:
            access.put_key(after)
        return KeyChange(access.state.version, after)


def _plan(context: PlanContext, body: CreateKeyBody) -> Plan:
    text = key_text(context.dice(KEY_BYTES)) if body.key is None else checked_given(body.key)
    key = ApiKey(
        hash_of(text),
        body.name,
        shown_part(text),
        checked_namespace(context.principal.namespace if body.namespace is None else body.namespace),
        body.role,
        queue_scope=parse_scope(body.queue_scope),
        is_enabled=body.enabled,
        expires_at=parse_expiry(body.expires_at, context.clock_ns()),
    )

    def conclude(results: list[KeyChange]) -> Answer:
        return Answer(200, key_created(text, results[0].key), results[0].version)

    return Plan([(0, CreateKey(granter_of(context.principal), key))], conclude)


ENDPOINTS = (
    Endpoint(
        name="create_key",
        access="auth:write",
        method="POST",
        path="/auth/keys",
        summary="Create an API key; the answer shows it once",
        body=CreateKeyBody,
        example={"name": "mailer", "role": "worker", "queue_scope": "emails.*"},
        answers={200: KeyCreated},
        refusals=("FORBIDDEN", "KEY_EXISTS", "NAMESPACE_IN_USE", "NAMESPACE_NOT_FOUND", "ROLE_NOT_FOUND")
        + ("TOO_MANY_KEYS",),
        plan=_plan,
        needs_principal=True,
    ),
)
