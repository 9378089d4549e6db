"""The keys that payloads are encrypted with: one line each, `ID:KEY`, 32 bytes in base64. The first one encrypts; the
others only decrypt what they once encrypted.

Not part of the pure core, because it reads a file.
"""

import base64
import binascii
from typing import NamedTuple

from corvo.model.sealed_text import KEY_ID
from corvo.runtime.secret_file import BadSecretFile, read_private

KEY_BYTES = 32
KEYS_MAX = 100
FILE_BYTES_MAX = 64 * 1024
MAKE = 'make one with `(umask 077; echo "k1:$(head -c 32 /dev/urandom | base64)" > FILE)`'


class PayloadKey(NamedTuple):
    id: str
    secret: bytes


def read_payload_keys(path: str) -> list[PayloadKey]:
    """Empty without a file. BadSecretFile with a sentence, which holds nothing of a key."""
    if not path:
        return []
    text = read_private(path, "the payload keys", "--payload-key-file", FILE_BYTES_MAX).decode("latin-1")
    lines = [line.strip() for line in text.splitlines()]
    keys = [_key(path, number, line) for number, line in enumerate(lines, 1) if line and not line.startswith("#")]
    if not 1 <= len(keys) <= KEYS_MAX:
        raise BadSecretFile(f"the payload keys {path} hold {len(keys)} keys; expected 1 to {KEYS_MAX}: {MAKE}")
    if len({key.id for key in keys}) < len(keys):
        raise BadSecretFile(f"the payload keys {path} have two keys of one id")
    return keys


def _key(path: str, number: int, line: str) -> PayloadKey:
    key_id, _, encoded = line.partition(":")
    try:
        secret = base64.b64decode(encoded.strip(), validate=True)
    except binascii.Error:
        secret = b""
    if not KEY_ID.fullmatch(key_id) or len(secret) != KEY_BYTES:
        raise BadSecretFile(f"line {number} of the payload keys {path} is not ID:KEY with 32 bytes in base64: {MAKE}")
    return PayloadKey(key_id, secret)
