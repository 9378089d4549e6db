"""Tables of the seed schema (`seeds/corvo-schema.md`) for features that are not built yet: AI and agents, enterprise.

They exist so that the read database has the published schema from the start. Only `seed_rows` writes them.
`schema.py` adds the tables that the mirror fills, and is the only module that others import.

Flags are INTEGER 0 or 1 and timestamps RFC 3339 text, as in the seed. Foreign keys are declared for readers of the
schema and for tools; the mirror does not enforce them, because rows of several shards arrive in any order.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

metadata = sa.MetaData()

# As on SQLite: text sorts by bytes, not by a language's collation, and integers have 64 bits.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
INTEGER = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
REAL: sa.types.TypeEngine[float] = sa.REAL().with_variant(sa.Double(), "postgresql")


def text(name: str, *rest: Any, default: str | None = None, **options: Any) -> sa.Column[Any]:
    """A TEXT column that must have a value."""
    return sa.Column(name, TEXT, *rest, nullable=False, server_default=default, **options)


def text_or_null(name: str, *rest: Any) -> sa.Column[Any]:
    return sa.Column(name, TEXT, *rest)


def integer(name: str, *, default: int | None = None, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, INTEGER, nullable=False, server_default=_literal(default), **options)


def integer_or_null(name: str) -> sa.Column[Any]:
    return sa.Column(name, INTEGER)


def real(name: str, *, default: int) -> sa.Column[Any]:
    return sa.Column(name, REAL, nullable=False, server_default=_literal(default))


def real_or_null(name: str) -> sa.Column[Any]:
    return sa.Column(name, REAL)


def tenant() -> sa.Column[Any]:
    """The namespace of a row. Names and ids carry it too, but an index can select it only as a column."""
    return text("namespace", default="default")


def job_reference() -> sa.Column[Any]:
    """No foreign key: a job that moves may have rows of two shards for a moment (`schema.py`)."""
    return text("job_id")


def counted_id() -> sa.Column[Any]:
    return sa.Column("id", INTEGER, primary_key=True, autoincrement=True)


def shard_in_key() -> sa.Column[Any]:
    """The shard, as part of the key."""
    return sa.Column("shard", INTEGER, primary_key=True, autoincrement=False)


def _literal(default: int | None) -> Any:
    return None if default is None else sa.text(str(default))


def _tokens() -> tuple[sa.Column[Any], ...]:
    """Tokens and cost of a call to a language model."""
    return (
        integer("input_tokens", default=0),
        integer("output_tokens", default=0),
        integer("cache_creation_tokens", default=0),
        integer("cache_read_tokens", default=0),
        text_or_null("model"),
        text_or_null("provider"),
        real("cost_usd", default=0),
    )


# AI and agents

sa.Table(
    "job_usage",
    metadata,
    counted_id(),
    job_reference(),
    text("queue"),
    integer("attempt"),
    text("phase"),
    *_tokens(),
    text("created_at"),
    sqlite_autoincrement=True,
)

sa.Table(
    "budgets",
    metadata,
    text("id", primary_key=True),
    text("scope"),
    text("target"),
    real_or_null("daily_usd"),
    real_or_null("per_job_usd"),
    text("on_exceed", default="hold"),
    text("created_at"),
)

sa.Table(
    "job_iterations",
    metadata,
    counted_id(),
    job_reference(),
    integer("iteration"),
    text("status"),
    text_or_null("checkpoint"),
    text_or_null("trace"),
    text_or_null("hold_reason"),
    text_or_null("result"),
    *_tokens(),
    text("created_at"),
    sqlite_autoincrement=True,
)

sa.Table(
    "job_scores",
    metadata,
    counted_id(),
    job_reference(),
    text("dimension"),
    sa.Column("value", REAL, nullable=False),
    text_or_null("scorer"),
    text("created_at"),
    sqlite_autoincrement=True,
)

sa.Table(
    "providers",
    metadata,
    text("name", primary_key=True),
    integer_or_null("rpm_limit"),
    integer_or_null("input_tpm_limit"),
    integer_or_null("output_tpm_limit"),
    text("created_at"),
)

sa.Table(
    "approval_policies",
    metadata,
    text("id", primary_key=True),
    text("name"),
    text("mode", default="any"),
    integer("enabled", default=1),
    text_or_null("queue"),
    text_or_null("tag_key"),
    text_or_null("tag_value"),
    text("created_at"),
)

sa.Table(
    "webhooks",
    metadata,
    text("id", primary_key=True),
    text("url"),
    text("events"),
    text_or_null("secret"),
    integer("enabled", default=1),
    integer("retry_limit", default=3),
    text("created_at"),
    integer_or_null("last_status_code"),
    text_or_null("last_error"),
    text_or_null("last_delivery_at"),
)

# Enterprise

sa.Table(
    "api_keys",
    metadata,
    text("key_hash", primary_key=True),
    text("name"),
    text("namespace", default="default"),
    text("role", default="readonly"),
    text_or_null("queue_scope"),
    integer("enabled", default=1),
    text_or_null("expires_at"),
    text("created_at"),
    text_or_null("last_used_at"),
)

sa.Table(
    "auth_roles",
    metadata,
    text("name", primary_key=True),
    text("permissions"),
    text("created_at"),
    text_or_null("updated_at"),
)

sa.Table(
    "auth_key_roles",
    metadata,
    text("key_hash", primary_key=True),
    text("role_name", primary_key=True),
    text("created_at"),
)

namespaces = sa.Table("namespaces", metadata, text("name", primary_key=True), text("created_at"))

sso_settings = sa.Table(
    "sso_settings",
    metadata,
    text("id", primary_key=True, default="singleton"),
    text("provider", default=""),
    text("oidc_issuer_url", default=""),
    text("oidc_client_id", default=""),
    integer("saml_enabled", default=0),
    text("oidc_group_claim", default="groups"),
    text("group_role_mappings", default="{}"),
    text("updated_at"),
)
