"""Wrong credentials, counted by address and by the part of a key that lists show: guessing is answered with 429.

Keys have 256 random bits, and nobody can guess them. So a good key is never refused because of others' guesses. The
admin password may be weaker: it is not accepted from an address that has guessed too often, until the pause is over.

A credential that is wrong again and again is one guess: a worker with an old key must not lock out its neighbours
behind the same proxy.
"""

from collections.abc import Callable
from time import monotonic

from corvo.model.errors import Refusal
from gateway.http.rate_limits import Client, Rate, TokenBuckets

GUESSES = Rate(0.2, 20.0)  # twenty at once, then one every five seconds
KNOWN_MAX = 10_000  # wrong credentials that are remembered
KNOWN_S = 0.5  # the copy of the records is asked for that often anyway: no need to ask for this one
PREFIX_BYTES = 11  # of a key: as many as lists show


class FailedCredentials:
    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._by_address = TokenBuckets(clock)
        self._by_prefix = TokenBuckets(clock)
        self._known: dict[bytes, float] = {}  # digest → when the records were last asked for it
        self.throttled_total = 0

    def is_known(self, digest: bytes) -> bool:
        """Whether the records were asked for this credential a moment ago, and did not hold it."""
        asked_at = self._known.get(digest)
        return asked_at is not None and self._clock() - asked_at < KNOWN_S

    def refuse_guesses(self, digest: bytes, credential: bytes, address: Client) -> None:
        """Before anybody is asked about a credential that is not known here."""
        if digest in self._known:
            return
        wait_s = self._by_address.take(address, 1.0, GUESSES)
        if not wait_s and credential.startswith(b"sk_"):
            wait_s = self._by_prefix.take(credential[:PREFIX_BYTES], 1.0, GUESSES)
        if wait_s:
            self._refuse(wait_s)

    def note(self, digest: bytes) -> None:
        """It was wrong."""
        self._known.pop(digest, None)
        self._known[digest] = self._clock()
        if len(self._known) > KNOWN_MAX:
            self._known = dict(list(self._known.items())[KNOWN_MAX // 2 :])

    def refuse_password(self, address: Client) -> None:
        """Of an address that has guessed too often."""
        if wait_s := self._by_address.wait_s(address, 1.0, GUESSES):
            self._refuse(wait_s)

    def _refuse(self, wait_s: float) -> None:
        self.throttled_total += 1
        raise Refusal(
            "RATE_LIMITED",
            "too many wrong credentials; send the request again after the pause",
            retry_after_ms=max(1, round(wait_s * 1000)),
        )
