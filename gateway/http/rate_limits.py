"""How many requests a second one client may send: token buckets by its address, for reads and for writes.

Off unless a setting says otherwise: behind a proxy or a load balancer all clients have one address, and would share one
bucket. The address is that of the connection, never one that a header claims. Each gateway counts for itself. Requests
to `/healthz`, `/metrics` and other pages are not counted, nor frames of the stream, which have limits of their own.
"""

from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv6Address
from time import monotonic
from typing import Any, NamedTuple

from corvo.model.errors import Refusal
from gateway.http.messages import Request

CLIENTS_MAX = 10_000  # remembered by each kind of bucket
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_READ_PATHS = frozenset({"/api/v1/jobs/search", "/api/v1/jobs/bulk-get"})
_ITEMS = {"enqueue_batch": "jobs", "ack_batch": "acks", "fail_batch": "fails"}


class Rate(NamedTuple):
    per_s: float
    burst: float


class TokenBuckets:
    """A bucket holds `burst` tokens and gains `per_s` a second. A client that is not known has a full one."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._buckets: dict[str | bytes, tuple[float, float]] = {}  # tokens, when they were counted

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, client: str | bytes, cost: float = 1.0) -> float:
        """0 when the client may go on, else the seconds until it may. A cost above the burst takes a full bucket."""
        now = self._clock()
        per_s, burst = self._rate
        cost = min(cost, burst)
        tokens, counted_at = self._buckets.get(client) or (burst, now)
        tokens = min(burst, tokens + (now - counted_at) * per_s)
        is_enough = tokens >= cost
        self._buckets[client] = (tokens - cost if is_enough else tokens, now)
        if len(self._buckets) > CLIENTS_MAX:
            self._forget(now)
        return 0.0 if is_enough else (cost - tokens) / per_s

    def _forget(self, now: float) -> None:
        """First buckets that are full again, for nothing is lost with them; then those that came first."""
        per_s, burst = self._rate
        busy = {
            client: (tokens, counted_at)
            for client, (tokens, counted_at) in self._buckets.items()
            if tokens + (now - counted_at) * per_s < burst
        }
        self._buckets = dict(list(busy.items())[-CLIENTS_MAX // 2 :])


class RateLimits:
    def __init__(self, read: Rate, write: Rate, clock: Callable[[], float] = monotonic) -> None:
        self._read = TokenBuckets(read, clock)
        self._write = TokenBuckets(write, clock)
        self.refused_total = 0

    def admit(self, request: Request) -> None:
        """A request, before anything is done with its body."""
        self._take(request, 1.0)

    def admit_items(self, request: Request, endpoint: str, body: Any) -> None:
        """The items of a batch beyond the first. Nothing has been done yet."""
        if endpoint == "fetch_batch":
            items = body.count
        elif name := _ITEMS.get(endpoint):
            items = len(getattr(body, name))
        else:
            return
        if items > 1:
            self._take(request, items - 1.0)

    def _take(self, request: Request, cost: float) -> None:
        is_read = request.method in _READS or request.path in _READ_PATHS
        wait_s = (self._read if is_read else self._write).take(client_of(request), cost)
        if wait_s:
            self.refused_total += 1
            kind = "reads" if is_read else "writes"
            raise Refusal(
                "RATE_LIMITED",
                f"too many {kind} from this address; retry after the given delay",
                retry_after_ms=max(1, round(wait_s * 1000)),
            )


def client_of(request: Request) -> str | bytes:
    """Its address; of IPv6 the network, because one machine has as many addresses of it as it likes."""
    client = request.scope.get("client")
    address = str(client[0]) if client else ""
    return _network(address) if ":" in address else address


@lru_cache(maxsize=4096)
def _network(address: str) -> str | bytes:
    try:
        parsed = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(parsed.ipv4_mapped) if parsed.ipv4_mapped else parsed.packed[:8]
