"""The records of access in the state of shard 0. All are in memory: every gateway has a copy of them.

Each change raises the version. Which records the newest versions changed is remembered, so that a gateway is sent those
alone; one that is further behind is sent everything. That memory is not replicated.
"""

from collections import deque
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import NamedTuple, TypeVar

import msgspec

from corvo.model.access_records import (
    AccessNews,
    AccessState,
    ApiKey,
    NamespaceRecord,
    RedactionRules,
    RoleRecord,
    SsoSettings,
)
from corvo.state import keys
from corvo.state.kv import KV

T = TypeVar("T")
CHANGES_KEPT = 1_000

encode = msgspec.msgpack.Encoder().encode
decode_key = msgspec.msgpack.Decoder(ApiKey).decode
decode_role = msgspec.msgpack.Decoder(RoleRecord).decode
decode_namespace = msgspec.msgpack.Decoder(NamespaceRecord).decode
decode_redaction = msgspec.msgpack.Decoder(RedactionRules).decode
decode_sso = msgspec.msgpack.Decoder(SsoSettings).decode


class Change(NamedTuple):
    version: int
    key: bytes


class AccessTable:
    def __init__(self, put_record: Callable[[bytes, bytes | None], None], put: Callable[[bytes, bytes], None]) -> None:
        self.state = AccessState()
        self._put_record = put_record
        self._put = put
        self._changes: deque[Change] = deque(maxlen=CHANGES_KEPT)
        self._remembered_from = 0  # the changes after this version are in `_changes`

    def recall(self, kv: KV) -> None:
        state = self.state
        for _, value in kv.scan(keys.API_KEYS, keys.prefix_end(keys.API_KEYS)):
            key = decode_key(value)
            state.keys[key.key_hash] = key
        for _, value in kv.scan(keys.ROLES, keys.prefix_end(keys.ROLES)):
            role = decode_role(value)
            state.roles[role.name] = role
        for _, value in kv.scan(keys.NAMESPACES, keys.prefix_end(keys.NAMESPACES)):
            namespace = decode_namespace(value)
            state.namespaces[namespace.name] = namespace
        if (raw := kv.get(keys.SSO)) is not None:
            state.sso = decode_sso(raw)
        if (raw := kv.get(keys.REDACTION)) is not None:
            state.redaction = decode_redaction(raw)
        if (raw := kv.get(keys.ACCESS_VERSION)) is not None:
            state.version = int.from_bytes(raw)
        self._remembered_from = state.version

    # Changes

    def put_key(self, key: ApiKey) -> None:
        self.state.keys[key.key_hash] = key
        self._write(keys.api_key(key.key_hash), encode(key))

    def drop_key(self, key_hash: str) -> None:
        del self.state.keys[key_hash]
        self._write(keys.api_key(key_hash), None)

    def touch_key(self, key: ApiKey) -> None:
        """It was used. No decision depends on that, so the version stays."""
        self.state.keys[key.key_hash] = key
        self._put_record(keys.api_key(key.key_hash), encode(key))

    def put_role(self, role: RoleRecord) -> None:
        self.state.roles[role.name] = role
        self._write(keys.role(role.name), encode(role))

    def drop_role(self, name: str) -> None:
        del self.state.roles[name]
        self._write(keys.role(name), None)

    def put_namespace(self, namespace: NamespaceRecord) -> None:
        self.state.namespaces[namespace.name] = namespace
        self._write(keys.namespace(namespace.name), encode(namespace))

    def drop_namespace(self, name: str) -> None:
        del self.state.namespaces[name]
        self._write(keys.namespace(name), None)

    def put_sso(self, sso: SsoSettings) -> None:
        self.state.sso = sso
        self._write(keys.SSO, encode(sso))

    def put_redaction(self, rules: RedactionRules) -> None:
        self.state.redaction = rules
        self._write(keys.REDACTION, encode(rules))

    def _write(self, key: bytes, value: bytes | None) -> None:
        state = self.state
        state.version += 1
        if len(self._changes) == CHANGES_KEPT:
            self._remembered_from = self._changes[0].version
        self._changes.append(Change(state.version, key))
        self._put_record(key, value)
        self._put(keys.ACCESS_VERSION, keys.pack_u64(state.version))

    # What a gateway is told

    def news(self, after: int, is_current: bool) -> AccessNews:
        state = self.state
        if after == state.version:
            return AccessNews(state.version, is_current)
        if not self._remembered_from <= after <= state.version:
            return AccessNews(
                state.version,
                is_current,
                True,
                list(state.keys.values()),
                list(state.roles.values()),
                list(state.namespaces.values()),
                state.sso,
                redaction=state.redaction,
            )
        news = AccessNews(state.version, is_current)
        newest = takewhile(lambda change: change.version > after, reversed(self._changes))
        changed = dict.fromkeys(change.key for change in newest)
        news.keys, news.gone_keys = _split(changed, keys.API_KEYS, state.keys)
        news.roles, news.gone_roles = _split(changed, keys.ROLES, state.roles)
        news.namespaces, news.gone_namespaces = _split(changed, keys.NAMESPACES, state.namespaces)
        if keys.SSO in changed:
            news.sso = state.sso
        if keys.REDACTION in changed:
            news.redaction = state.redaction
        return news


def _split(changed: Iterable[bytes], family: bytes, records: dict[str, T]) -> tuple[list[T], list[str]]:
    """The records of one family that were changed, and the names of those that are gone."""
    names = [keys.access_name(key) for key in changed if key.startswith(family)]
    return [records[name] for name in names if name in records], [name for name in names if name not in records]
