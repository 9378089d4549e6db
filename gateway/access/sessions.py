"""The cookie of a browser, and sessions that begin with the admin password.

A browser that logs in with a key keeps the key in its cookie. One that logs in with the password gets a token instead,
which ends after some hours and does not tell the password. The token is its end and a signature; the key of the
signature is derived from the password. So every gateway of every node can check it, and a new password ends them all.
"""

import hmac
import secrets
from hashlib import sha256

from gateway.access.credentials import COOKIE

SESSION_S = 12 * 3600
_PREFIX = b"cps_"
_NONCE_BYTES = 8


def set_cookie(value: str, is_secure: bool, seconds: int) -> str:
    """The header's value. Strict: no request that another site begins carries the cookie."""
    flags = "; Secure" if is_secure else ""
    return f"{COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{flags}"


def clear_cookie(is_secure: bool) -> str:
    return set_cookie("", is_secure, 0)


class AdminPassword:
    """Compares credentials with the password, and makes sessions of it. Neither takes a time that depends on it."""

    def __init__(self, password: str) -> None:
        self._digest = sha256(password.encode()).digest()
        self._signing_key = hmac.digest(password.encode(), b"corvo session of the admin password", "sha256")

    def is_it(self, digest: bytes) -> bool:
        """`digest`: SHA-256 of the credential."""
        return hmac.compare_digest(digest, self._digest)

    def session(self, ends_at_s: int) -> str:
        text = b"%b%x_%b" % (_PREFIX, ends_at_s, secrets.token_hex(_NONCE_BYTES).encode())
        return (text + b"_" + self._signature(text)).decode()

    def end_of(self, credential: bytes) -> int | None:
        """When a session ends, in seconds since 1970; None for other credentials."""
        if not credential.startswith(_PREFIX):
            return None
        text, _, signature = credential.rpartition(b"_")
        if not hmac.compare_digest(signature, self._signature(text)):
            return None
        return int(text[len(_PREFIX) :].partition(b"_")[0], 16)

    def _signature(self, text: bytes) -> bytes:
        return hmac.new(self._signing_key, text, "sha256").hexdigest().encode()
