"""What plans know of their client: its namespace and its scope."""

from corvo.endpoint import PlanContext
from corvo.model.access import Principal
from corvo.model.namespaces import DEFAULT
from corvo.model.reach import Reach

CONTEXTS_MAX = 10_000  # of namespaces and scopes, made as they are needed


class Contexts:
    def __init__(self, context: PlanContext) -> None:
        self.default = context  # of most principals
        self._others: dict[Reach, PlanContext] = {}

    def of(self, principal: Principal) -> PlanContext:
        """Of the principal's namespace and scope: ids of other namespaces do not exist there."""
        if principal.namespace == DEFAULT and not principal.queue_scope:
            return self.default
        reach = principal.reach
        context = self._others.get(reach)
        if context is None:
            if len(self._others) >= CONTEXTS_MAX:
                self._others.clear()
            context = self._others[reach] = self.default.within(reach.namespace, reach.scope)
        return context
