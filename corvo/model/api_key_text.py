"""The text of an API key: `sk_`, 256 random bits in base 62, and a checksum, by which scanners recognise a leaked key.

Only the SHA-256 of a key is stored. A fast hash is enough, because nobody can guess 256 random bits.
"""

import re
from hashlib import sha256
from zlib import crc32

from corvo.model.errors import invalid

KEY_BYTES = 32
PREFIX = "sk_"
SHOWN_CHARS = 11  # of a key that the server made
GIVEN_CHARS_MIN = 20  # of a key that a client made
GIVEN_CHARS_MAX = 256

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BODY_CHARS = 43  # base 62 of 256 bits
_CHECK_CHARS = 6  # base 62 of 32 bits
_GIVEN = re.compile(r"[\x21-\x7e]+")
HASH = re.compile(r"[0-9a-f]{64}")


def key_text(dice: bytes) -> str:
    assert len(dice) == KEY_BYTES
    body = _base62(int.from_bytes(dice), _BODY_CHARS)
    return PREFIX + body + _checksum(body)


def has_checksum(key: str) -> bool:
    """Whether a key is one that a server made, without a typing mistake."""
    body = key.removeprefix(PREFIX)[:-_CHECK_CHARS]
    return key.isascii() and key.startswith(PREFIX) and len(body) == _BODY_CHARS and key.endswith(_checksum(body))


def hash_of(key: str) -> str:
    return sha256(key.encode()).hexdigest()


def shown_part(key: str) -> str:
    """What lists show of it; nothing of a key that a client made, which may be short."""
    return key[:SHOWN_CHARS] if has_checksum(key) else ""


def checked_given(key: str) -> str:
    """A key that a client made."""
    if not GIVEN_CHARS_MIN <= len(key) <= GIVEN_CHARS_MAX or not _GIVEN.fullmatch(key):
        raise invalid(
            "key",
            f"a key has {GIVEN_CHARS_MIN} to {GIVEN_CHARS_MAX} visible ASCII characters; leave it out, and the server"
            " makes one",
        )
    return key


def _checksum(body: str) -> str:
    return _base62(crc32(body.encode()), _CHECK_CHARS)


def _base62(number: int, size: int) -> str:
    digits = []
    for _ in range(size):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
