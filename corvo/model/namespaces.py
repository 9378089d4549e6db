"""Namespaces: each tenant's names and ids are its own.

Inside the server a name carries its namespace in front (`acme|emails.send`), an id at its end
(`s03_job_18a1…_acme`). The namespace `default` adds nothing. No name of a client may contain the separator, and ids are
made by the server, so neither can be forged: an id with another namespace's ending was never made, or belongs there.
Two tenants with a queue of the same name have two queues, perhaps on two shards, and nothing below the gateway has to
know about tenants.

The gateway qualifies every name on the way in (`corvo/model/name_fields.py`) and shows it without its namespace on the
way out.
"""

from corvo.model.errors import invalid
from corvo.model.limits import NAMESPACE

DEFAULT = "default"
EVERY = "*"  # of a key that may act in every namespace
SEPARATOR = "|"


def qualify(namespace: str, name: str) -> str:
    return name if namespace == DEFAULT else f"{namespace}{SEPARATOR}{name}"


def shown_name(name: str) -> str:
    """A name as its tenant knows it."""
    return name[name.find(SEPARATOR) + 1 :]


def namespace_of(name: str) -> str:
    cut = name.find(SEPARATOR)
    return DEFAULT if cut < 0 else name[:cut]


def id_ending(namespace: str) -> str:
    return "" if namespace == DEFAULT else f"_{namespace}"


def checked_namespace(name: str, field: str = "namespace") -> str:
    if not NAMESPACE.fullmatch(name):
        raise invalid(
            field,
            f"{name[:100]!r} is not a namespace: 1 to 63 lower-case letters, digits and hyphens, no hyphen at the ends",
        )
    return name


def namespace_of_id(text: str) -> str:
    """Of an id that the server made."""
    parts = text.split("_", 3)
    behind = 2 if parts[0] == "bulk" else 3
    return parts[behind] if len(parts) > behind else DEFAULT
