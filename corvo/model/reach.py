"""What a request may see: one namespace and, where its key has a scope, some of the queues in it."""

import msgspec

from corvo.model.globs import is_in_scope
from corvo.model.namespaces import DEFAULT, namespace_of, shown_name


class Reach(msgspec.Struct, array_like=True, frozen=True):
    """Travels inside queries to shards: add a field last, with a default; never reorder."""

    namespace: str = DEFAULT
    scope: tuple[str, ...] = ()  # globs over names as the tenant knows them; empty: every queue of the namespace

    def holds(self, queue: str) -> bool:
        """Whether it has this queue, by its qualified name. With a scope, it has nothing that has no queue."""
        if namespace_of(queue) != self.namespace:
            return False
        return not self.scope or is_in_scope(shown_name(queue), self.scope)

    def holds_all(self, queues: tuple[str, ...]) -> bool:
        return all(map(self.holds, queues))
