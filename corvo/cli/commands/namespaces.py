"""`corvo namespaces`: list, create, limit and delete namespaces."""

from typing import Annotated

import typer

from corvo.cli.commands.requests import Commands, OutputFormat, ServerUrl, Yes, asking, confirm
from corvo.cli.commands.watching import watchable
from corvo.client import DEFAULT_SERVER

app = Commands(
    help="List, create, limit and delete namespaces. Without a command, list them.",
    invoke_without_command=True,
)

NamespaceName = Annotated[str, typer.Argument(metavar="NAMESPACE", help="name of the namespace")]


@app.callback()
def namespaces(context: typer.Context, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """List, create, limit and delete namespaces. Without a command, list them.

    \b
    Example:
      corvo namespaces
    """
    if context.invoked_subcommand is None:
        list_(server=server, output=output)


@app.command("list")
@watchable
def list_(server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """List namespaces with their limits. A tenant sees its own.

    \b
    Examples:
      corvo namespaces list
      corvo namespaces list --output json | jq -r '.[].name'
    """
    from corvo.cli.screen import show_access  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        views = client.namespaces()
    answer(views, output, lambda: show_access.namespaces(views))


@app.command()
def create(namespace: NamespaceName, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Create a namespace: a tenant with queues, jobs and keys of its own. One that exists is left as it is.

    \b
    Examples:
      corvo namespaces create acme
      corvo namespaces create acme --output json
    """
    from corvo.cli.screen.show import answer, done  # lazy: rich
    from corvo.client.bodies import CreateNamespaceBody  # lazy: msgspec

    with asking(server) as client:
        made = client.create_namespace(CreateNamespaceBody(namespace))
    answer(made, output, lambda: done(made.name, made.status))


@app.command()
def delete(
    namespace: NamespaceName, yes: Yes = False, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table"
) -> None:
    """Delete a namespace that has no API keys. Nobody can reach its jobs any more; they stay stored.

    \b
    Examples:
      corvo namespaces delete acme
      corvo namespaces delete acme --yes
    """
    from corvo.cli.screen.show import answer, done  # lazy: rich

    confirm(yes, f"delete the namespace {namespace}? Nobody will reach its jobs any more")
    with asking(server) as client:
        deleted = client.delete_namespace(namespace)
    answer(deleted, output, lambda: done(namespace, deleted.status))


@app.command("rate-limit")
def rate_limit(
    namespace: NamespaceName,
    read_rps: Annotated[float | None, typer.Option(metavar="N", help="requests per second that read")] = None,
    read_burst: Annotated[float | None, typer.Option(metavar="N", help="requests at once that read")] = None,
    write_rps: Annotated[float | None, typer.Option(metavar="N", help="requests per second that write")] = None,
    write_burst: Annotated[float | None, typer.Option(metavar="N", help="requests at once that write")] = None,
    defaults: Annotated[bool, typer.Option("--defaults", help="back to the server's settings")] = False,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Show how many requests a namespace may send, or set it. What is not given is the server's setting.

    \b
    Examples:
      corvo namespaces rate-limit acme
      corvo namespaces rate-limit acme --read-rps 500 --read-burst 1000 --write-rps 100 --write-burst 200
      corvo namespaces rate-limit acme --defaults
    """
    from corvo.cli.screen import show_access  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.client.bodies import RateLimitBody  # lazy: msgspec

    body = RateLimitBody(read_rps, read_burst, write_rps, write_burst)
    with asking(server) as client:
        if defaults or body != RateLimitBody():
            client.set_namespace_rate_limit(namespace, RateLimitBody() if defaults else body)
        limit = client.namespace_rate_limit(namespace)
    answer(limit, output, lambda: show_access.rate_limit(limit))


@app.command()
def quotas(
    namespace: NamespaceName,
    max_jobs: Annotated[int | None, typer.Option(metavar="N", min=0, help="jobs that are stored; 0: no limit")] = None,
    max_payload_bytes: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="payloads of all stored jobs; 0: no limit")
    ] = None,
    max_queues: Annotated[int | None, typer.Option(metavar="N", min=0, help="queues; 0: no limit")] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Show how much a namespace may store, or change it. Options that are not given stay unchanged.

    \b
    Examples:
      corvo namespaces quotas acme
      corvo namespaces quotas acme --max-jobs 1000000 --max-queues 100
    """
    from corvo.cli.screen import show_access  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.client.bodies import QuotasBody  # lazy: msgspec

    given = (max_jobs, max_payload_bytes, max_queues)
    with asking(server) as client:
        view = client.namespace_quotas(namespace)
        if any(number is not None for number in given):
            before = (view.max_jobs, view.max_payload_bytes, view.max_queues)
            new = (old if number is None else number for number, old in zip(given, before, strict=True))
            client.set_namespace_quotas(namespace, QuotasBody(*new))
            view = client.namespace_quotas(namespace)
    answer(view, output, lambda: show_access.quotas(view))
