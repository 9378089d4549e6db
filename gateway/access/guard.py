"""Admits requests: finds the principal of each, and the namespace that it acts in."""

from corvo.endpoint import PlanContext
from corvo.model.access import ANONYMOUS, Principal
from corvo.model.namespaces import DEFAULT
from corvo.model.reach import Reach
from gateway.http.messages import Request

CONTEXTS_MAX = 10_000  # of namespaces and scopes, made as they are needed


class Guard:
    def __init__(self, context: PlanContext) -> None:
        self._context = context  # of most principals
        self._contexts: dict[Reach, PlanContext] = {}

    async def admit(self, request: Request) -> None:
        """Set the request's principal and context, or refuse it."""
        principal = self._find(request)
        request.principal = principal
        request.context = self.context(principal)

    def _find(self, request: Request) -> Principal:
        return ANONYMOUS

    def context(self, principal: Principal) -> PlanContext:
        """Of the principal's namespace and scope: ids of other namespaces do not exist there."""
        if principal.namespace == DEFAULT and not principal.queue_scope:
            return self._context
        reach = principal.reach
        context = self._contexts.get(reach)
        if context is None:
            if len(self._contexts) >= CONTEXTS_MAX:
                self._contexts.clear()
            context = self._contexts[reach] = self._context.within(reach.namespace, reach.scope)
        return context
