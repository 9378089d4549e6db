"""`corvo roles`: list, make and delete roles, and give them to API keys."""

from typing import Annotated

import typer

from corvo.cli.commands.keys import KeyName, find_hash
from corvo.cli.commands.requests import MISUSED, Commands, OutputFormat, ServerUrl, Yes, asking, confirm, stop
from corvo.cli.commands.watching import watchable
from corvo.client import DEFAULT_SERVER

app = Commands(
    help="List, make and delete roles, and give them to API keys. Without a command, list them.",
    invoke_without_command=True,
)

RoleName = Annotated[str, typer.Argument(metavar="ROLE", help="name of the role")]


@app.callback()
def roles(context: typer.Context, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """List, make and delete roles, and give them to API keys. Without a command, list them.

    \b
    Example:
      corvo roles
    """
    if context.invoked_subcommand is None:
        list_(server=server, output=output)


@app.command("list")
@watchable
def list_(server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """List all roles with their permissions, the built-in ones first.

    \b
    Examples:
      corvo roles list
      corvo roles list --output json | jq '.[] | select(.built_in | not)'
    """
    from corvo.cli.screen import show_access  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        views = client.roles()
    answer(views, output, lambda: show_access.roles(views))


@app.command()
def put(
    role: RoleName,
    allow: Annotated[
        list[str], typer.Option("--allow", metavar="RESOURCE:ACTIONS", help="such as jobs:read,cancel; repeatable")
    ],
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Create a custom role, or replace its permissions.

    \b
    Examples:
      corvo roles put auditor --allow '*:read,list'
      corvo roles put support --allow jobs:read,list,retry,cancel --allow queues:read --allow payloads:see
    """
    from corvo.cli.screen.show import answer, done  # lazy: rich
    from corvo.client.bodies import Permission, PutRoleBody  # lazy: msgspec

    permissions = []
    for text in allow:
        resource, _, actions = text.partition(":")
        if not resource or not actions:
            stop(MISUSED, f"--allow {text}: expected a resource and actions, such as jobs:read,cancel")
        permissions.append(Permission(resource, tuple(action for action in actions.split(",") if action)))
    with asking(server) as client:
        made = client.put_role(PutRoleBody(role, tuple(permissions)))
    answer(made, output, lambda: done(role, made.status))


@app.command()
def delete(
    role: RoleName, yes: Yes = False, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table"
) -> None:
    """Delete a custom role, and take it from all API keys.

    \b
    Examples:
      corvo roles delete auditor
      corvo roles delete auditor --yes
    """
    from corvo.cli.screen.show import answer, done  # lazy: rich

    confirm(yes, f"delete the role {role}, and take it from all keys?")
    with asking(server) as client:
        deleted = client.delete_role(role)
    answer(deleted, output, lambda: done(role, deleted.status))


@app.command()
def bind(key: KeyName, role: RoleName, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Give an API key a role, in addition to those that it has.

    \b
    Examples:
      corvo roles bind mailer auditor
      corvo roles bind sk_4bT9xQ2a auditor --output json
    """
    from corvo.cli.screen.show import answer, done  # lazy: rich
    from corvo.client.bodies import BindRoleBody  # lazy: msgspec

    with asking(server) as client:
        bound = client.bind_role(find_hash(client, key), BindRoleBody(role))
    answer(bound, output, lambda: done(key, bound.status))


@app.command()
def unbind(key: KeyName, role: RoleName, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Take a role from an API key.

    \b
    Examples:
      corvo roles unbind mailer auditor
      corvo roles unbind sk_4bT9xQ2a auditor --output json
    """
    from corvo.cli.screen.show import answer, done  # lazy: rich

    with asking(server) as client:
        taken = client.unbind_role(find_hash(client, key), role)
    answer(taken, output, lambda: done(key, taken.status))
