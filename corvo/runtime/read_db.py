"""The setting of the read database: empty for a file in the data directory, or an address.

    postgresql://user:password@host:port/database?schema=corvo&sslmode=require

All parts but `schema` are libpq's. Pure: nothing is resolved or connected to.
"""

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from corvo.runtime.clustering import is_clustered

if TYPE_CHECKING:  # settings.py imports this module
    from corvo.runtime.settings import Settings

SCHEMES = ("postgresql", "postgres")
SCHEMA = "corvo"
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,39}")  # needs no quotes, and leaves room for suffixes
_HIDDEN = "***"


class PostgresAddress(msgspec.Struct, frozen=True):
    url: str  # for libpq: may hold a password
    schema: str

    @property
    def shown(self) -> str:
        """Without the password, for logs and messages."""
        return f"{without_password(self.url)} schema {self.schema}"


def parse_read_db(text: str, schema: str = SCHEMA) -> PostgresAddress | None:
    """None means SQLite. `schema` is the default for an address without one."""
    if not text:
        return None
    parts = urlsplit(text)
    if parts.scheme not in SCHEMES:
        raise ValueError("expected postgresql://user@host/database, or nothing for a file in the data directory")
    if len(parts.path) < 2:
        raise ValueError("it names no database: postgresql://user@host/database")
    query = parse_qsl(parts.query, keep_blank_values=True)
    named = [value for name, value in query if name == "schema"]
    rest = urlencode([(name, value) for name, value in query if name != "schema"])
    schema = named[-1] if named else schema
    if not _SCHEMA_NAME.fullmatch(schema) or schema.startswith("pg_") or schema == "public":
        raise ValueError(
            f"schema is {schema!r}: expected 1 to 40 of a-z, 0-9 and _, not starting with a digit or pg_, not public"
        )
    return PostgresAddress(text.partition("?")[0] + (f"?{rest}" if rest else ""), schema)


def address_of(settings: "Settings") -> PostgresAddress | None:
    """None means a file in the data directory."""
    return parse_read_db(settings.read_db, schema_of_node(settings.node_id, is_clustered(settings)))


def schema_of_node(node_id: str, is_clustered: bool) -> str:
    """Each node of a cluster has a read database of its own."""
    return f"{SCHEMA}_{re.sub('[^a-z0-9_]', '_', node_id.lower())[:34]}" if is_clustered else SCHEMA


def without_password(url: str) -> str:
    """Also for a text that is not an address."""
    shown = re.sub(r"(?<=://)([^/@?]*?):[^/?]*@", rf"\1:{_HIDDEN}@", url)
    return re.sub(r"(?i)(password=)[^&\s]*", rf"\1{_HIDDEN}", shown)
