"""Which refused requests are recorded in the audit log: those that a credential lacks the right for, at a bounded rate.

A client that is denied again and again must not push older records out of the log: each client has a small budget, and
all together have one. What is not recorded is counted, and the count stands in the client's next record.
"""

from collections.abc import Callable
from time import monotonic

from gateway.http.rate_limits import Rate, TokenBuckets

DENIED = frozenset({"UNAUTHORIZED", "FORBIDDEN"})
OF_CLIENT = Rate(per_s=0.2, burst=5)
OF_ALL = Rate(per_s=5, burst=50)
CLIENTS_COUNTED = 10_000


class Denials:
    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._of_client = TokenBuckets(clock)
        self._of_all = TokenBuckets(clock)
        self._suppressed: dict[str, int] = {}

    def take(self, client: str) -> int | None:
        """How many denials of this client were not recorded before this one; None: this one is not recorded either."""
        if self._of_client.take(client, 1.0, OF_CLIENT) or self._of_all.take("", 1.0, OF_ALL):
            if client in self._suppressed or len(self._suppressed) < CLIENTS_COUNTED:
                self._suppressed[client] = self._suppressed.get(client, 0) + 1
            return None
        return self._suppressed.pop(client, 0)
