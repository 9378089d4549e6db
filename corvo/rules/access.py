"""Changes to the records of access, and who may make them (`corvo/model/granting.py`). All of it is decided where the
change is applied: what a gateway knows may be a moment old."""

from collections.abc import Collection

from corvo.model.access import ROLES, Permission
from corvo.model.access_records import AccessState, ApiKey, NamespaceRecord, NamespaceState
from corvo.model.errors import Refusal
from corvo.model.granting import Granter
from corvo.model.limits import EXPIRED_KEY_KEPT_MS, KEYS_MAX, KEYS_PER_NAMESPACE_MAX, ROLES_PER_KEY_MAX
from corvo.model.namespaces import DEFAULT
from corvo.state.tables import Tables


def require_key(state: AccessState, granter: Granter, key_hash: str) -> ApiKey:
    """A key of another namespace does not exist for those who do not manage it."""
    key = state.keys.get(key_hash)
    if key is None or not granter.reaches(key.namespace):
        raise Refusal("KEY_NOT_FOUND", f"no API key has the hash {key_hash[:64]!r}")
    return key


def require_role(state: AccessState, name: str) -> tuple[Permission, ...]:
    permissions = state.find_role(name)
    if permissions is None:
        raise Refusal("ROLE_NOT_FOUND", f"there is no role {name[:100]!r}; GET /auth/roles lists them")
    return permissions


def require_namespace(state: AccessState, name: str) -> NamespaceRecord:
    namespace = state.namespace(name)
    if namespace is None:
        raise Refusal("NAMESPACE_NOT_FOUND", f"there is no namespace {name[:100]!r}; create it with POST /namespaces")
    return namespace


def require_active(state: AccessState, name: str) -> None:
    if require_namespace(state, name).state is NamespaceState.DELETING:
        raise Refusal("NAMESPACE_IN_USE", f"the namespace {name} is being deleted")


def check_grant(state: AccessState, granter: Granter, key: ApiKey, what: str) -> None:
    """The granter has everything that the key has."""
    granter.require_permissions(state.permissions_of(key.all_roles), what)
    granter.require_scope(key.queue_scope, what)
    if key.namespace == DEFAULT and not key.queue_scope and not granter.is_cluster_wide:
        raise Refusal("FORBIDDEN", f"{what} belongs to the whole cluster, and {granter.name or 'this key'} does not")


def check_change(state: AccessState, granter: Granter, before: ApiKey | None, after: ApiKey) -> None:
    """Who creates or changes a key must cover it as it was and as it will be."""
    if before is not None:
        check_grant(state, granter, before, "the key")
    for role in after.all_roles:
        require_role(state, role)
    if len(after.roles) > ROLES_PER_KEY_MAX:
        raise Refusal("TOO_MANY_ROLES", f"a key has at most {ROLES_PER_KEY_MAX} custom roles")
    check_grant(state, granter, after, "the key")


def make_room_for_key(tables: Tables, namespace: str, ended: Collection[str] = ()) -> None:
    """Refuse one too many, and forget keys that expired long ago or have `ended`. Called last: what it forgets stays
    forgotten."""
    access, now = tables.access, tables.now
    forgotten = [
        key.key_hash
        for key in access.state.keys.values()
        if key.key_hash in ended or (key.expires_at and key.expires_at + EXPIRED_KEY_KEPT_MS * 1_000_000 < now)
    ]
    inside = sum(key.namespace == namespace for key in access.state.keys.values())
    of_namespace = inside - sum(access.state.keys[key_hash].namespace == namespace for key_hash in forgotten)
    if len(access.state.keys) - len(forgotten) >= KEYS_MAX:
        raise Refusal("TOO_MANY_KEYS", f"a cluster has at most {KEYS_MAX} API keys; delete some first")
    if namespace != DEFAULT and of_namespace >= KEYS_PER_NAMESPACE_MAX:
        raise Refusal(
            "TOO_MANY_KEYS", f"the namespace {namespace} has {KEYS_PER_NAMESPACE_MAX} API keys, the most that one may"
        )
    for key_hash in forgotten:
        access.drop_key(key_hash)


def check_role_name(name: str) -> None:
    if name in ROLES:
        raise Refusal("VALIDATION_ERROR", f"role: {name} is built in and cannot be changed", field="role")
