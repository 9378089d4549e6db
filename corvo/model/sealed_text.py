"""Sealed documents: how an encrypted payload, result or checkpoint looks where it is stored. Pure: no keys here.

    {"$sealed":"1~KEY~SUBJECT~FIELD~DATA"}

It is JSON, so that everything that stores, copies and merges documents treats it like any other. DATA is base64 of a
nonce and of what AES-256-GCM made. SUBJECT and FIELD are authenticated with it: the job that a document belongs to, or
the chain, batch or schedule that its job is made from.
"""

import re

MARK = "$sealed"
MARK_TEXT = '"$sealed":"1~'
MARK_BYTES = MARK_TEXT.encode()
PREFIX = '{"$sealed":"1~'
KEY_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def sealed_text(key_id: str, subject: str, field: str, data: str) -> bytes:
    return f'{PREFIX}{key_id}~{subject}~{field}~{data}"}}'.encode()


def parse_sealed(text: object) -> tuple[str, str, str, str] | None:
    """Key, subject, field and data of what stands under `MARK`; None: nothing that was sealed here."""
    parts = text.split("~", 4) if isinstance(text, str) else []
    if len(parts) < 5 or parts[0] != "1" or not KEY_ID.fullmatch(parts[1]):
        return None
    return parts[1], parts[2], parts[3], parts[4]


def is_sealed(document: bytes) -> bool:
    """Whether it is sealed, or was merged with something that is."""
    return MARK_BYTES in document
