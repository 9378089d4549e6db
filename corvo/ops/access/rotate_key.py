"""RotateKey: a new key takes the place of an old one. Both work until the overlap is over, so that no worker has to
stop while it gets the new key.

The new key has the name, namespace, roles and scope of the old one. If the old one was to expire, the new one lives as
long again. Without an overlap the old key is disabled, not expired: then it ends at once, whatever a node's clock says.
"""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.access_records import ApiKey
from corvo.model.api_key_text import KEY_BYTES, checked_given, hash_of, key_text, shown_part
from corvo.model.errors import Refusal, invalid
from corvo.model.granting import Granter, granter_of
from corvo.model.job import SpanMs
from corvo.model.limits import KEY_OVERLAP_MS_MAX
from corvo.model.timestamps import LATEST_NS, parse_duration
from corvo.ops.access.fields import GivenKey, KeyChange, KeyCreated, checked_hash, key_created
from corvo.rules.access import check_change, make_room_for_key, require_active, require_key
from corvo.state.tables import Tables


class RotateKeyBody(Body):
    overlap: Annotated[str, Meta(description="how long the old key still works: `24h`; `0s`: not at all")] = "24h"
    key: GivenKey = None


class RotateKey(Operation, tag=72):
    granter: Granter
    key_hash: str
    new_hash: str
    new_prefix: str
    overlap_ms: SpanMs

    result: ClassVar[Any] = KeyChange

    def apply(self, tables: Tables) -> KeyChange:
        access, now = tables.access, tables.now
        before = require_key(access.state, self.granter, self.key_hash)
        known = access.state.keys.get(self.new_hash)
        if known is not None:
            if known.replaces != self.key_hash:
                raise Refusal("KEY_EXISTS", "the new key is in use already; choose another key")
            return KeyChange(access.state.version, known)  # a repeated request
        require_active(access.state, before.namespace)
        new = msgspec.structs.replace(
            before,
            key_hash=self.new_hash,
            prefix=self.new_prefix,
            created_at=now,
            created_by=self.granter.name,
            expires_at=min(now + before.expires_at - before.created_at, LATEST_NS) if before.expires_at else 0,
            last_used_at=0,
            replaces=self.key_hash,
        )
        check_change(access.state, self.granter, before, new)
        make_room_for_key(tables, new.namespace)
        if before.key_hash in access.state.keys:  # it may just have been forgotten
            access.put_key(_ending(before, now, self.overlap_ms))
        access.put_key(new)
        return KeyChange(access.state.version, new)


def _ending(key: ApiKey, now: int, overlap_ms: int) -> ApiKey:
    if not overlap_ms:
        return msgspec.structs.replace(key, is_enabled=False)
    return msgspec.structs.replace(key, expires_at=min(key.expires_at or LATEST_NS, now + overlap_ms * 1_000_000))


def _plan(context: PlanContext, body: RotateKeyBody, key_hash: str) -> Plan:
    try:
        overlap_ms = parse_duration(body.overlap)
    except ValueError as error:
        raise invalid("overlap", str(error)) from None
    if overlap_ms > KEY_OVERLAP_MS_MAX:
        raise invalid("overlap", "at most 90d")
    text = key_text(context.dice(KEY_BYTES)) if body.key is None else checked_given(body.key)
    rotate = RotateKey(
        granter_of(context.principal), checked_hash(key_hash), hash_of(text), shown_part(text), overlap_ms
    )

    def conclude(results: list[KeyChange]) -> Answer:
        return Answer(200, key_created(text, results[0].key), results[0].version)

    return Plan([(0, rotate)], conclude)


ENDPOINTS = (
    Endpoint(
        name="rotate_key",
        access="auth:write",
        method="POST",
        path="/auth/keys/{key_hash}/rotate",
        summary="Replace an API key; the old one still works for a while, and the answer shows the new one once",
        body=RotateKeyBody,
        body_optional=True,
        example={"overlap": "24h"},
        answers={200: KeyCreated},
        refusals=("FORBIDDEN", "KEY_EXISTS", "KEY_NOT_FOUND", "NAMESPACE_IN_USE", "TOO_MANY_KEYS"),
        plan=_plan,
        needs_principal=True,
    ),
)
