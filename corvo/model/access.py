"""Who may do what: permissions, roles, and the principal that a request acts for. Pure.

Each endpoint names the permission that it needs as `resource:action` (`Endpoint.access`). A principal has permissions
through its roles; those of all its roles are united. The built-in roles are the table below; custom roles are records
of the replicated state.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from corvo.model.errors import Refusal
from corvo.model.globs import is_in_scope
from corvo.model.namespaces import DEFAULT, shown_name
from corvo.model.reach import Reach

OPEN = "open"  # the access of an endpoint that needs no credential
EVERYTHING = "*"
READS = ("read", "list")
SEE_PAYLOADS = "payloads:see"  # beyond the permission of the endpoint: payloads, results, checkpoints, progress
REVEAL_PAYLOADS = "payloads:reveal"  # also values with secret names
CHOOSE_NAMESPACE = "namespaces:choose"  # act in the namespace that the header names
OWN = "self:read"  # of every principal that has a credential, whatever its roles
# Resources of the whole cluster → what a tenant may do with them. Everything else is for principals of the namespace
# `default` without a queue scope: to others no role gives it, not even admin.
CLUSTER_WIDE: dict[str, tuple[str, ...]] = {
    "cluster": (),  # its status describes the whole installation
    "admin": (),
    "roles": ("read",),
    "namespaces": ("read",),  # their own
    "sso": (),
}


class Permission(msgspec.Struct, frozen=True):
    resource: Annotated[str, Meta(min_length=1, max_length=64, description="such as `jobs`; `*`: every resource")]
    actions: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=64)], ...],
        Meta(max_length=64, description="such as `cancel`; `write`: everything but read and list; `*`: every action"),
    ]

    def allows(self, resource: str, action: str) -> bool:
        if self.resource not in (EVERYTHING, resource):
            return False
        return action in self.actions or EVERYTHING in self.actions or ("write" in self.actions and action not in READS)


_EVERY = (EVERYTHING,)
_WORK = ("enqueue", "fetch", "ack", "fail", "heartbeat", "read")

ROLES: dict[str, tuple[Permission, ...]] = {
    "admin": (Permission(EVERYTHING, _EVERY),),
    "operator": (
        Permission(EVERYTHING, READS),
        *(Permission(resource, _EVERY) for resource in ("jobs", "bulk", "batches", "schedules", "queues")),
        *(Permission(resource, _EVERY) for resource in ("cluster", "admin")),
        Permission("payloads", ("see",)),
    ),
    "worker": (
        Permission("jobs", _WORK),
        Permission("batches", ("read", "write")),
        Permission("payloads", ("see",)),
        Permission("docs", ("read",)),
    ),
    "readonly": (Permission(EVERYTHING, READS),),
}


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The key or person that a request acts for, and the namespace that it acts in."""

    name: str  # shown in the audit log: a key's name, a person's e-mail address
    kind: Literal["anonymous", "password", "key", "person", "proxy"]
    roles: tuple[str, ...]
    permissions: tuple[Permission, ...]
    namespace: str = DEFAULT
    home: str = DEFAULT  # the namespace that it belongs to; another than `namespace` when it has chosen one
    queue_scope: tuple[str, ...] = ()  # globs; empty: every queue of the namespace
    key_hash: str = ""
    expires_at: int = 0  # ns; 0: never
    known: dict[str, bool] = msgspec.field(default_factory=dict)  # what `may` found before

    def may(self, access: str) -> bool:
        answer = self.known.get(access)
        if answer is None:
            answer = self.known[access] = self._finds(access)
        return answer

    def _finds(self, access: str) -> bool:
        if access == OPEN:
            return True
        if access == OWN:
            return self.kind != "anonymous" or bool(self.permissions)
        resource, _, action = access.partition(":")
        if not self.is_cluster_wide and action not in CLUSTER_WIDE.get(resource, (action,)):
            return False
        return any(one.allows(resource, action) for one in self.permissions)

    @property
    def is_cluster_wide(self) -> bool:
        """Whether it can have permissions that concern all tenants."""
        return self.home == DEFAULT and not self.queue_scope

    def require(self, access: str) -> None:
        if not self.may(access):
            if not self.is_cluster_wide and access.partition(":")[0] in CLUSTER_WIDE:
                raise Refusal(
                    "FORBIDDEN",
                    f"this is of the whole installation: only principals of the namespace {DEFAULT} without a queue"
                    " scope may do it",
                )
            raise Refusal("FORBIDDEN", f"{self.name or 'this key'} may not do this: it needs the permission {access}")

    def reaches(self, queue: str) -> bool:
        """Whether a queue, qualified or not, is in the scope."""
        return not self.queue_scope or is_in_scope(shown_name(queue), self.queue_scope)

    def require_queues(self, queues: Iterable[str]) -> None:
        if self.queue_scope:
            for queue in queues:
                if not self.reaches(queue):
                    raise Refusal(
                        "FORBIDDEN", f"the queue {shown_name(queue)[:200]!r} is outside the scope of this key"
                    )

    @property
    def reach(self) -> Reach:
        return Reach(self.namespace, self.queue_scope)

    def within(self, namespace: str) -> "Principal":
        return self if namespace == self.namespace else msgspec.structs.replace(self, namespace=namespace)


def built_in(name: str, kind: Literal["anonymous", "password", "key", "person", "proxy"], role: str) -> Principal:
    return Principal(name=name, kind=kind, roles=(role,), permissions=ROLES[role])


ANONYMOUS = built_in("anonymous", "anonymous", "admin")  # every client, where authentication is off
# A client without a credential, where none is needed.
NOBODY = Principal(name="", kind="anonymous", roles=(), permissions=())
