"""Types and checks that the operations on records of access share."""

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from corvo.model.access_records import ApiKey
from corvo.model.api_key_text import HASH, shown_part
from corvo.model.errors import Refusal, invalid
from corvo.model.limits import SCOPE_CHARS_MAX
from corvo.model.timestamps import parse_rfc3339, to_rfc3339_or_none

KeyName = Annotated[
    str,
    Meta(
        pattern=r"^[^\x00-\x1f\x7f]{1,256}\Z",
        description="1 to 256 characters, none of them a control character; shown in lists and in the audit log",
    ),
]
RoleName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}\Z",
        description="1 to 64 characters of letters, digits and `._:-`, beginning with a letter or digit",
    ),
]
KeyHash = Annotated[str, Meta(pattern=rf"^{HASH.pattern}\Z", description="SHA-256 of the key, in hexadecimal digits")]
Scope = Annotated[
    str | list[str] | None,
    Meta(description="globs of queue names, as a list or separated by commas; none: every queue of the namespace"),
]
Expiry = Annotated[str | None, Meta(description="RFC 3339, or a date; none: it does not expire")]
GivenKey = Annotated[
    str | None, Meta(description="20 to 256 visible ASCII characters; if none is given, the server makes one")
]

_GLOB = re.compile(r"[A-Za-z0-9._:/*?\[\]!-]{1,200}")


class AccessChanged(msgspec.Struct):
    status: str


class KeyCreated(msgspec.Struct, kw_only=True, omit_defaults=True):
    status: str
    api_key: Annotated[str, Meta(description="the key; it is shown this once")]
    key_hash: str
    prefix: str = ""
    expires_at: str | None = None


class KeyChange(msgspec.Struct, array_like=True):
    """A key after a change, and the version that holds it."""

    version: int
    key: ApiKey


def key_created(text: str, key: ApiKey) -> KeyCreated:
    return KeyCreated(
        status="ok",
        api_key=text,
        key_hash=key.key_hash,
        prefix=shown_part(text),
        expires_at=to_rfc3339_or_none(key.expires_at),
    )


def parse_scope(scope: str | list[str] | None) -> tuple[str, ...]:
    """Sorted, so that the same scope has one text."""
    globs = scope.split(",") if isinstance(scope, str) else scope or []
    globs = [glob.strip() for glob in globs if glob.strip()]
    for glob in globs:
        if not _GLOB.fullmatch(glob):
            raise invalid("queue_scope", f"{glob[:100]!r} is no glob of queue names")
    if sum(map(len, globs)) + len(globs) > SCOPE_CHARS_MAX:
        raise invalid("queue_scope", f"at most {SCOPE_CHARS_MAX} characters in all")
    return tuple(sorted(set(globs)))


def parse_expiry(text: str | None, now_ns: int) -> int:
    if not text:
        return 0
    try:
        moment = parse_rfc3339(text)
    except ValueError as error:
        raise invalid("expires_at", str(error)) from None
    if moment <= now_ns:
        raise invalid("expires_at", "this is in the past; to stop a key at once, disable or delete it")
    return moment


def checked_hash(key_hash: str) -> str:
    """From a path. What cannot be a hash is no key."""
    if not HASH.fullmatch(key_hash):
        raise Refusal("KEY_NOT_FOUND", f"no API key has the hash {key_hash[:64]!r}")
    return key_hash
