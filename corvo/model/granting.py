"""Who may give which access to others. Pure.

- Nobody gives what they lack: every permission of a key or role that is made, changed or removed must be covered by the
  permissions of the principal that does it. That includes taking away: a weaker key cannot disable a stronger one.
- A principal with a queue scope gives scopes inside its own, and never none.
- A principal manages the keys of the namespace that it acts in. Only a cluster administrator, acting in `default`,
  manages those of every namespace. Keys of other namespaces do not exist for it.
- Roles, namespaces and sign-on settings are the cluster's (`CLUSTER_WIDE` in `access.py`).

A comparison that cannot be decided by looking at the texts counts as "not covered".
"""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import msgspec

from corvo.model.access import EVERYTHING, READS, Permission, Principal
from corvo.model.errors import Refusal
from corvo.model.namespaces import DEFAULT, EVERY

_SPECIAL = frozenset("*?[")


class Granter(msgspec.Struct, array_like=True, frozen=True):
    """The principal that changes records of access, as the operation carries it."""

    name: str
    reach: str  # the namespace whose keys it manages; EVERY: of all
    permissions: tuple[Permission, ...]
    queue_scope: tuple[str, ...] = ()
    is_cluster_wide: bool = False

    def reaches(self, namespace: str) -> bool:
        return self.reach in (EVERY, namespace)

    def require_permissions(self, permissions: Iterable[Permission], what: str) -> None:
        missing = lacking(self.permissions, permissions)
        if missing is not None:
            raise Refusal("FORBIDDEN", f"{what} has the permission {missing}, which {self.name or 'this key'} lacks")

    def require_scope(self, scope: Sequence[str], what: str) -> None:
        if not contains_scope(self.queue_scope, scope):
            raise Refusal("FORBIDDEN", f"{what} reaches queues outside the scope of {self.name or 'this key'}")


def is_cluster_admin(principal: Principal) -> bool:
    return principal.is_cluster_wide and lacking(principal.permissions, _ALL) is None


def granter_of(principal: Principal) -> Granter:
    reach = EVERY if is_cluster_admin(principal) and principal.namespace == DEFAULT else principal.namespace
    return Granter(
        principal.name, reach, principal.permissions, principal.queue_scope, is_cluster_wide=principal.is_cluster_wide
    )


_ALL = (Permission(EVERYTHING, (EVERYTHING,)),)


def lacking(held: Sequence[Permission], wanted: Iterable[Permission]) -> str | None:
    """The first of the wanted that the held ones do not cover, as `resource:action`."""
    for permission in wanted:
        for action in permission.actions:
            if not _covers(held, permission.resource, action):
                return f"{permission.resource}:{action}"
    return None


def _covers(held: Sequence[Permission], resource: str, action: str) -> bool:
    of_resource = [one for one in held if one.resource in (EVERYTHING, resource)]
    if any(action in one.actions or EVERYTHING in one.actions for one in of_resource):
        return True
    if action == EVERYTHING:  # `write` is everything but the reads
        return all(_covers(held, resource, part) for part in ("write", *READS))
    return action not in READS and any("write" in one.actions for one in of_resource)


def contains_scope(outer: Sequence[str], inner: Sequence[str]) -> bool:
    """Whether every queue of the inner scope is in the outer one. An empty scope is every queue."""
    if not outer:
        return True
    return bool(inner) and all(any(_contains_glob(one, other) for one in outer) for other in inner)


def _contains_glob(outer: str, inner: str) -> bool:
    if outer == inner:
        return True
    if _SPECIAL.isdisjoint(inner):
        return fnmatchcase(inner, outer)
    beginning = outer.removesuffix("*")
    return outer.endswith("*") and _SPECIAL.isdisjoint(beginning) and inner.startswith(beginning)
