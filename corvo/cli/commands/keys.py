"""`corvo keys`: list, create, change and revoke API keys. `corvo whoami`: whose key this is."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corvo.cli.commands.requests import MISUSED, Commands, OutputFormat, ServerUrl, Yes, asking, confirm, stop
from corvo.cli.commands.times import moment
from corvo.cli.commands.watching import watchable
from corvo.client import DEFAULT_SERVER

if TYPE_CHECKING:
    from corvo.client.answers import KeyView
    from corvo.client.http import Client

app = Commands(
    help="List, create, change and revoke API keys. Without a command, list them.",
    invoke_without_command=True,
)

HASH_CHARS = 64
KeyName = Annotated[
    str, typer.Argument(metavar="KEY", help="hash of the key, how the hash or the key begins, or its name")
]
Role = Annotated[str, typer.Option(metavar="ROLE", help="admin, operator, worker, readonly, or a custom role")]
Scope = Annotated[str | None, typer.Option(metavar="GLOBS", help="queues that it reaches: 'emails.*,reports'")]
Expires = Annotated[
    str | None, typer.Option(metavar="WHEN", help="2030-01-31T09:00:00Z, 2030-01-31, or 90d (from now)")
]


@app.callback()
def keys(context: typer.Context, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """List, create, change and revoke API keys. Without a command, list them.

    \b
    Example:
      corvo keys
    """
    if context.invoked_subcommand is None:
        list_(namespace=None, server=server, output=output)


@app.command("list")
@watchable
def list_(
    namespace: Annotated[str | None, typer.Option(metavar="NAME", help="only keys of this namespace")] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """List API keys, oldest first. The keys themselves are not stored.

    \b
    Examples:
      corvo keys list
      corvo keys list --namespace acme
      corvo keys list --output json | jq -r '.[] | select(.last_used_at == null) | .name'
    """
    from corvo.cli.screen import show_access  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.client.bodies import KeysQuery  # lazy: msgspec

    with asking(server) as client:
        views = client.api_keys(KeysQuery(namespace or ""))
    answer(views, output, lambda: show_access.keys(views))


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="name for people; shown in lists and in the audit log")],
    role: Role = "readonly",
    namespace: Annotated[str | None, typer.Option(metavar="NAME", help="namespace of the key; default: yours")] = None,
    scope: Scope = None,
    expires: Expires = None,
    key_stdin: Annotated[bool, typer.Option("--key-stdin", help="read the key from standard input")] = False,
    disabled: Annotated[bool, typer.Option("--disabled", help="create it disabled")] = False,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Create an API key and print it. It is shown this once.

    \b
    Examples:
      corvo keys create mailer --role worker --scope 'emails.*'
      corvo keys create ci --role operator --expires 90d
      corvo keys create acme-admin --role admin --namespace acme --output json | jq -r .api_key
      corvo keys generate | head -1 | corvo keys create mailer --role worker --key-stdin
    """
    from corvo.cli.screen import show_access  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.client.bodies import CreateKeyBody  # lazy: msgspec

    body = CreateKeyBody(
        name=name,
        key=sys.stdin.readline().strip() if key_stdin else None,
        namespace=namespace,
        role=role,
        queue_scope=scope,
        expires_at=_moment(expires),
        enabled=not disabled,
    )
    with asking(server) as client:
        made = client.create_key(body)
    answer(made, output, lambda: show_access.key_made(made))


@app.command()
def update(
    key: KeyName,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="new name")] = None,
    role: Annotated[str | None, typer.Option(metavar="ROLE", help="new role")] = None,
    scope: Annotated[
        str | None, typer.Option(metavar="GLOBS", help="queues that it reaches; '' means every queue")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="WHEN", help="2030-01-31, or 90d (from now); '' means never")
    ] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Change an API key. Options that are not given stay unchanged.

    \b
    Examples:
      corvo keys update mailer --scope 'emails.*,reports'
      corvo keys update mailer --name mailer-2 --expires 30d
    """
    changes: dict[str, Any] = {"name": name, "role": role}
    if scope is not None:
        changes["queue_scope"] = scope or None
    if expires is not None:
        changes["expires_at"] = _moment(expires)
    _change(key, server, output, **changes)


@app.command()
def disable(key: KeyName, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Disable an API key. It is refused on every node within two seconds, until it is enabled again.

    \b
    Examples:
      corvo keys disable mailer
      corvo keys disable sk_4bT9xQ2a --output json
    """
    _change(key, server, output, enabled=False)


@app.command()
def enable(key: KeyName, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Enable an API key that was disabled.

    \b
    Examples:
      corvo keys enable mailer
      corvo keys enable mailer --output json
    """
    _change(key, server, output, enabled=True)


@app.command()
def rotate(
    key: KeyName,
    overlap: Annotated[str, typer.Option(metavar="SPAN", help="how long the old key still works; 0s: not at all")] = (
        "24h"
    ),
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Replace an API key and print the new one. The old one still works for a while.

    \b
    Examples:
      corvo keys rotate mailer
      corvo keys rotate mailer --overlap 0s
      corvo keys rotate mailer --output json | jq -r .api_key
    """
    from corvo.cli.screen import show_access  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.client.bodies import RotateKeyBody  # lazy: msgspec

    with asking(server) as client:
        made = client.rotate_key(find_hash(client, key), RotateKeyBody(overlap=overlap))
    answer(made, output, lambda: show_access.key_made(made))


@app.command()
def delete(key: KeyName, yes: Yes = False, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Delete an API key. It is refused on every node within two seconds.

    \b
    Examples:
      corvo keys delete mailer
      corvo keys delete sk_4bT9xQ2a --yes
    """
    from corvo.cli.screen.show import answer, done  # lazy: rich

    with asking(server) as client:
        key_hash = find_hash(client, key)
        confirm(yes, f"delete the API key {key}?")
        deleted = client.revoke_key(key_hash)
    answer(deleted, output, lambda: done(key, deleted.status))


@app.command()
def generate(output: OutputFormat = "table") -> None:
    """Make an API key without a server, and print it and its hash. No server knows it yet.

    \b
    Examples:
      corvo keys generate
      corvo keys generate --output json | jq -r .api_key
    """
    import os  # lazy: only here

    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.model.api_key_text import KEY_BYTES, hash_of, key_text  # lazy: hashlib

    key = key_text(os.urandom(KEY_BYTES))
    answer({"api_key": key, "key_hash": hash_of(key)}, output, lambda: f"{key}\n{hash_of(key)}")


def whoami(server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Show who the server takes you for: roles, permissions, namespace and scope.

    \b
    Examples:
      corvo whoami
      CORVO_API_KEY_FILE=mailer.key corvo whoami --output json | jq -r .namespace
    """
    from corvo.cli.screen import show_access  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        view = client.whoami()
    answer(view, output, lambda: show_access.principal(view))


def find_hash(client: "Client", text: str) -> str:
    """The hash of the key that is meant. Ends the command when none is, or several are."""
    if len(text) == HASH_CHARS and set(text) <= set("0123456789abcdef"):
        return text
    found = [view for view in client.api_keys() if _is_meant(view, text)]
    if not found:
        stop(MISUSED, f"no API key is called {text}, nor begins so; corvo keys list shows them")
    if len(found) > 1:
        hashes = ", ".join(view.key_hash[:12] for view in found[:5])
        stop(MISUSED, f"{len(found)} API keys are called {text} or begin so; give one of the hashes {hashes}")
    return found[0].key_hash


def _is_meant(view: "KeyView", text: str) -> bool:
    shown = bool(view.prefix) and (view.prefix.startswith(text) or text.startswith(view.prefix))
    return view.name == text or (len(text) >= 6 and (shown or view.key_hash.startswith(text)))


def _change(key: str, server: str, output: str, **changes: Any) -> None:
    from corvo.cli.screen import show_access  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.client.bodies import UpdateKeyBody  # lazy: msgspec

    with asking(server) as client:
        view = client.update_key(find_hash(client, key), UpdateKeyBody(**changes))
    answer(view, output, lambda: show_access.keys([view]))


def _moment(text: str | None) -> str | None:
    if not text:
        return None
    try:
        return moment(text, time.time_ns(), is_ahead=True)
    except ValueError as error:
        stop(MISUSED, f"--expires {text}: {error}")
