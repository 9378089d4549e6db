"""How many requests a second one client may send: token buckets, for reads and for writes.

A client is a principal: a key or a person. The principals of a tenant share the limits of their namespace, so that a
tenant gains nothing by making more keys. In the namespace `default`, which holds every key of a server with one tenant,
each principal has its own, unless the namespace has limits. Without a credential, a client is the address of its
connection, never one that a header claims; behind a proxy all clients share it, so such clients are limited only if the
setting says `on`.

A request counts once, whatever it holds, and a frame of a stream not at all: the stream has bounds of its own. In a
namespace with limits, each job of a batch or a frame counts, so that they are limits of jobs. Each gateway counts for
itself. Requests to `/healthz`, `/metrics` and other pages are not counted.
"""

from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv6Address
from time import monotonic
from typing import Any, Literal, NamedTuple

from corvo.model.access import Principal
from corvo.model.access_records import RateLimit
from corvo.model.errors import Refusal
from corvo.model.namespaces import DEFAULT
from gateway.http.messages import Request

CLIENTS_MAX = 10_000  # remembered by each kind of bucket
SLOWEST = 0.001  # a second: what is told to a client whose rate is zero
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_READ_PATHS = frozenset({"/api/v1/jobs/search", "/api/v1/jobs/bulk-get"})
_ITEMS = {"enqueue_batch": "jobs", "ack_batch": "acks", "fail_batch": "fails"}

Client = str | bytes


class Rate(NamedTuple):
    per_s: float
    burst: float


class TokenBuckets:
    """A bucket holds `burst` tokens and gains `per_s` a second. A client that is not known has a full one."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._buckets: dict[Client, tuple[float, float, Rate]] = {}  # tokens, when they were counted

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, client: Client, cost: float, rate: Rate) -> float:
        """0 when the client may go on, else the seconds until it may. A cost above the burst takes a full bucket."""
        per_s, burst = rate
        now = self._clock()
        cost = min(cost, burst)
        tokens = self._tokens(client, rate, now)
        is_enough = tokens >= cost
        self._buckets[client] = (tokens - cost if is_enough else tokens, now, rate)
        if len(self._buckets) > CLIENTS_MAX:
            self._forget(now)
        return 0.0 if is_enough else (cost - tokens) / max(per_s, SLOWEST)

    def wait_s(self, client: Client, cost: float, rate: Rate) -> float:
        """The same, and nothing is taken."""
        return max((cost - self._tokens(client, rate, self._clock())) / max(rate.per_s, SLOWEST), 0.0)

    def _tokens(self, client: Client, rate: Rate, now: float) -> float:
        held = self._buckets.get(client)
        return rate.burst if held is None else min(rate.burst, held[0] + (now - held[1]) * rate.per_s)

    def _forget(self, now: float) -> None:
        """First buckets that are full again, for nothing is lost with them; then those that came first."""
        busy = {
            client: held for client, held in self._buckets.items() if self._tokens(client, held[2], now) < held[2].burst
        }
        self._buckets = dict(list(busy.items())[-CLIENTS_MAX // 2 :])


class RateLimits:
    def __init__(
        self,
        read: Rate,
        write: Rate,
        mode: Literal["auto", "on"] = "on",
        limits_of: Callable[[str], RateLimit | None] = lambda namespace: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`read` and `write` apply where the record of a namespace says nothing else. `auto`: clients with a credential
        are limited."""
        self._defaults = (read, write)
        self._limits_addresses = mode == "on"
        self._limits_of = limits_of
        self._buckets = (TokenBuckets(clock), TokenBuckets(clock))
        self.refused_total = 0

    def admit(self, request: Request) -> None:
        """A request, before anything is done with its body."""
        self._take(request.principal, request, _is_read(request), 1.0)

    def admit_items(self, request: Request, endpoint: str, body: Any) -> None:
        """The items of a batch beyond the first, where they count. Nothing has been done yet."""
        if self._limits_of(request.principal.namespace) is None:
            return
        if endpoint == "fetch_batch":
            items = body.count
        elif name := _ITEMS.get(endpoint):
            items = len(getattr(body, name))
        else:
            return
        if items > 1:
            self._take(request.principal, request, _is_read(request), items - 1.0)

    def admit_frame(self, request: Request, items: int) -> None:
        """A frame of a stream that `request` opened, where frames count."""
        if self._limits_of(request.principal.namespace) is None:
            return
        self._take(request.principal, request, False, float(max(items, 1)))

    def _take(self, principal: Principal, request: Request, is_read: bool, cost: float) -> None:
        if principal.kind == "anonymous" and not self._limits_addresses:
            return
        limits = self._limits_of(principal.namespace)
        client = _client(principal, limits, request)
        rate = self._rate(limits, is_read)
        wait_s = self._buckets[is_read].take(client, cost, rate)
        if wait_s:
            self.refused_total += 1
            raise Refusal(
                "RATE_LIMITED",
                f"too many {'reads' if is_read else 'writes'}: {rate.per_s:g} a second are allowed;"
                " retry after the given delay",
                retry_after_ms=max(1, round(wait_s * 1000)),
            )

    def _rate(self, limits: RateLimit | None, is_read: bool) -> Rate:
        default = self._defaults[0 if is_read else 1]
        if limits is None:
            return default
        per_s = limits.read_rps if is_read else limits.write_rps
        burst = limits.read_burst if is_read else limits.write_burst
        return Rate(default.per_s if per_s is None else per_s, default.burst if burst is None else burst)


def _is_read(request: Request) -> bool:
    return request.method in _READS or request.path in _READ_PATHS


def _client(principal: Principal, limits: RateLimit | None, request: Request) -> Client:
    if principal.kind == "anonymous":
        return client_of(request)
    if principal.namespace != DEFAULT or limits is not None:
        return f"namespace {principal.namespace}"
    return principal.key_hash or f"{principal.kind} {principal.name}"


def client_of(request: Request) -> Client:
    """Its address; of IPv6 the network, because one machine has as many addresses of it as it likes."""
    client = request.scope.get("client")
    address = str(client[0]) if client else ""
    return _network(address) if ":" in address else address


@lru_cache(maxsize=4096)
def _network(address: str) -> Client:
    try:
        parsed = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(parsed.ipv4_mapped) if parsed.ipv4_mapped else parsed.packed[:8]
