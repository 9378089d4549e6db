"""The command `corvo`: every command, its flags and its help.

Exit codes: 0 done; 1 the server refused or cannot be reached; 2 wrong usage or settings. Errors are one line each on
standard error that says what to do. What is not foreseen here is a bug, and shows its traceback.
"""

import os
import sys
from typing import Annotated, Literal, NoReturn

import typer

from corvo import __version__
from corvo.cli.commands import (
    batch,
    bench,
    bulk,
    cluster,
    derived,
    events,
    job,
    lists,
    node,
    queue,
    schedules,
    search,
    why,
)
from corvo.cli.commands.flags import Flags, load_settings, with_settings
from corvo.cli.commands.requests import MISUSED, OK, REFUSED, Commands, OutputFormat, ServerUrl, asking, complain, stop
from corvo.client import DEFAULT_SERVER
from corvo.model.limits import NODES_MAX, SHARDS_MAX
from corvo.runtime.addresses import PORT_MAX
from corvo.runtime.read_db import without_password
from corvo.runtime.settings import BadSettings, names

app = Commands(
    name="corvo",
    help="Corvo, a job server: start one, give it jobs, look at them.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # rich help takes twice the time to come up
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
app.add_typer(batch.app, name="batch")
app.add_typer(bulk.app, name="bulk")
app.add_typer(cluster.app, name="cluster")
app.add_typer(node.app, name="node")
app.add_typer(job.app, name="job")
app.add_typer(queue.app, name="queue")
app.add_typer(schedules.app, name="schedules")

# The choices of the core, written again because importing it slows `corvo --help` by a quarter; a test compares.
PriorityName = Literal["critical", "high", "normal"]
UntilName = Literal["done", "period", "start"]
PolicyName = Literal["fail", "cancel", "run"]
FsyncName = Literal["on", "off"]


def main() -> NoReturn:
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """The exit code. Only what a user can put right is caught, and it is said."""
    try:
        code = app(arguments, prog_name="corvo", standalone_mode=False)
    except typer.TyperException as error:
        if message := error.format_message():
            complain(f"{message.rstrip('.')}; corvo --help shows the usage")
        return error.exit_code
    except typer.Abort:
        complain("interrupted")
        return REFUSED
    return code if isinstance(code, int) else OK


@app.command()
@with_settings
def server(flags: Flags, config: str | None) -> None:
    """Start a node: gateway, shards and mirror, kept running until Ctrl-C or SIGTERM.

    A flag wins over its variable, a variable over the settings file.

    \b
    Examples:
      corvo server
      corvo server --data-dir /var/lib/corvo --bind 127.0.0.1:8080 --shards 8
      corvo server --node-id a --peers a=db-1:9400,b=db-2:9400,c=db-3:9400 --cluster-secret-file secret
      corvo server --bootstrap --node-id a --cluster-secret-file secret
      corvo server --join db-1:9400,db-2:9400 --node-id d --cluster-secret-file secret
      corvo server --bind :8443 --tls-cert server.pem --tls-key server.key
      CORVO_FSYNC=off corvo server --config corvo.toml
    """
    from corvo.cli.supervise.server import (  # lazy: supervisor and structlog are for this command alone
        CannotStart,
        serve,
    )

    try:
        settings, _ = load_settings(flags, config, os.environ)
        code = serve(settings)
    except BadSettings as error:
        stop(MISUSED, *error.faults)
    except CannotStart as error:
        stop(MISUSED, str(error))
    raise typer.Exit(code)


@app.command()
@with_settings
def config(flags: Flags, config: str | None) -> None:
    """Print each setting, its value and where it comes from, as `corvo server` would see it.

    \b
    Examples:
      corvo config
      corvo config --config corvo.toml --shards 8
    """
    from corvo.cli.screen import show  # lazy: rich

    try:
        settings, origins = load_settings(flags, config, os.environ)
    except BadSettings as error:
        stop(MISUSED, *error.faults)
    values = ((name, without_password(str(getattr(settings, name))), origins[name]) for name in names())
    show.table(show.settings_rows(values))


@app.command()
def local(
    nodes: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=NODES_MAX, help="nodes to start  [default: 3]")
    ] = None,
    shards: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=SHARDS_MAX, help="shards of the cluster  [default: 4]")
    ] = None,
    data_dir: Annotated[str, typer.Option(metavar="DIR", help="directory of all nodes")] = "corvo-local",
    fsync: Annotated[FsyncName, typer.Option(help="off: a power cut may lose acknowledged jobs")] = "on",
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=1, max=PORT_MAX, help="first port of HTTP; free ones when not given"),
    ] = None,
    raft_port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=1, max=PORT_MAX, help="first port between nodes; free ones when not given"),
    ] = None,
    tls_cert: Annotated[
        str, typer.Option(metavar="FILE", envvar="CORVO_TLS_CERT", help="certificate of all nodes (PEM): HTTPS only")
    ] = "",
    tls_key: Annotated[
        str, typer.Option(metavar="FILE", envvar="CORVO_TLS_KEY", help="private key of the certificate (PEM)")
    ] = "",
    output: OutputFormat = "table",
) -> None:
    """Start a whole cluster on this machine, to try it out: several nodes, kept running until Ctrl-C or SIGTERM.

    Each node is a `corvo server` with a directory and a log of its own below the data directory. The ports are kept
    there, too: a second start finds the same cluster at the same addresses. With --output json one object with nodes,
    addresses and process ids is printed when all are ready.

    \b
    Examples:
      corvo local
      corvo local --nodes 5 --shards 2 --port 8080
      corvo local --data-dir /tmp/cluster --fsync off --output json
    """
    from corvo.cli.commands.local import run_local  # lazy: rich and httpx
    from corvo.cli.supervise.local_layout import LayoutOptions  # lazy: as below
    from corvo.cli.supervise.server import CannotStart  # lazy: as above, in `server`

    try:
        wishes = LayoutOptions(data_dir, nodes, shards, port, raft_port, fsync, tls_cert, tls_key)
        code = run_local(wishes, is_json=output == "json")
    except CannotStart as error:
        stop(MISUSED, str(error))
    raise typer.Exit(code)


@app.command()
def enqueue(
    queue: Annotated[str, typer.Argument(help="queue that gets the job")],
    payload: Annotated[str, typer.Argument(help="JSON; - reads it from standard input")] = "{}",
    priority: Annotated[PriorityName, typer.Option(help="higher ones are fetched first")] = "normal",
    max_retries: Annotated[int | None, typer.Option(metavar="N", help="attempts in all")] = None,
    scheduled_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="not before this moment, such as 2026-01-31T09:00:00Z")
    ] = None,
    delay: Annotated[str | None, typer.Option(metavar="SPAN", help="not before so long from now, such as 10m")] = None,
    expire_after: Annotated[
        str | None, typer.Option(metavar="SPAN", help="end it as dead if it is not done so long from now")
    ] = None,
    unique_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="make no job while one of the queue holds this key")
    ] = None,
    unique_period: Annotated[
        int | None, typer.Option(metavar="SECONDS", help="it holds the key for so long at most  [default: 3600]")
    ] = None,
    unique_until: Annotated[UntilName, typer.Option(help="when the key is free again")] = "done",
    idempotency_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="make no job while one with this key is kept, also an ended one")
    ] = None,
    depends_on: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="wait for this job; may be given several times")
    ] = None,
    on_dependency_failure: Annotated[
        PolicyName, typer.Option(help="what becomes of it when such a job is lost")
    ] = "fail",
    batch: Annotated[str | None, typer.Option(metavar="ID", help="an open batch that the job is added to")] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="may be given several times")] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Enqueue one job and print its id. For chains and backoffs use `POST /api/v1/enqueue`.

    \b
    Examples:
      corvo enqueue mail '{"to": "ada@example.org"}'
      corvo enqueue mail --priority high --tag team=billing --scheduled-at 2026-01-31T09:00:00Z
      corvo enqueue sync '{"user": 7}' --unique-key user-7 --delay 10m --expire-after 1h
      corvo enqueue cake.serve --depends-on s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 --on-dependency-failure cancel
      cat job.json | corvo enqueue mail -
    """
    from corvo.cli.commands import bodies  # lazy: rich, and the operations with msgspec
    from corvo.cli.screen import show  # lazy: rich, and the operations with msgspec

    try:
        body = bodies.enqueue_body(
            queue,
            sys.stdin.read() if payload == "-" else payload,
            priority=priority,
            max_retries=max_retries,
            tags=tag or [],
            depends_on=depends_on or [],
            scheduled_at=scheduled_at,
            delay=delay,
            expire_after=expire_after,
            unique_key=unique_key,
            unique_period=unique_period,
            unique_until=unique_until,
            idempotency_key=idempotency_key,
            on_dependency_failure=on_dependency_failure,
            batch_id=batch,
        )
    except bodies.BadArgument as error:
        stop(MISUSED, str(error))
    with asking(server) as client:
        answer = client.enqueue(body)
    show.answer(answer, output == "json", lambda: show.enqueued(answer))


@app.command()
def inspect(
    job_id: Annotated[str, typer.Argument(help="id of the job")],
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Show one job with its failures, as the shard that holds it knows it now.

    \b
    Examples:
      corvo inspect s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
      corvo inspect s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 --output json
    """
    from corvo.cli.screen import show  # lazy: rich

    with asking(server) as client:
        job = client.get_job(job_id)
    show.answer(job, output == "json", lambda: show.job(job))


for action in (*derived.ACTIONS, job.delete, job.replay):  # also without `job`, as people type them
    app.command()(action)
app.command()(why.why)
app.command()(events.events)
app.command()(bench.bench)
app.command()(search.search)
for _command in (queue.pause, queue.resume, queue.drain, queue.clear):  # as people type them in a hurry
    app.command()(_command)


@app.command()
def queues(server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """List all queues: jobs in each state, rates, and how long the oldest job has been there that is pending.

    \b
    Examples:
      corvo queues
      corvo queues --output json | jq '.[] | select(.dead > 0)'
    """
    from corvo.cli.screen import show  # lazy: rich

    with asking(server) as client:
        answer = client.queues()
    show.answer(answer, output == "json", lambda: show.queues(answer))


@app.command()
def status(server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Show the health and the figures of the node and its shards.

    \b
    Examples:
      corvo status
      corvo status --server http://corvo.internal:8080 --output json
    """
    from corvo.cli.screen import show  # lazy: rich

    with asking(server) as client:
        answer = client.cluster_status()
    show.answer(answer, output == "json", lambda: show.status(answer))


for _list in lists.COMMANDS:
    app.command()(_list)


@app.command()
def top(
    interval: Annotated[float, typer.Option("--interval", "-d", min=0.2, max=60, help="seconds between looks")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="print one picture and exit")] = False,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object a picture, a line each")] = False,
    count: Annotated[int | None, typer.Option("-n", metavar="COUNT", min=1, help="so many pictures, then exit")] = None,
    server: ServerUrl = DEFAULT_SERVER,
) -> None:
    """Watch the server live: rates, queues, shards, workers.

    Keys: q quit, p freeze, + and - change the interval. Without a terminal it prints one picture.

    \b
    Examples:
      corvo top
      corvo top --once
      corvo top --json -n 60 > minute.jsonl
    """
    from corvo.cli.commands import top as view  # lazy: rich

    if json or once or count is not None or not sys.stdout.isatty():
        with asking(server) as client:
            view.write(client, interval, count or 1, is_json=json)
    else:
        # No second attempts: between two looks the keys must be heard, and the next look is an attempt anyway.
        with asking(server, timeout_s=3.0, deadline_s=0.0) as client:
            view.watch(client, interval)


@app.command()
def version() -> None:
    """Print the version of this program.

    \b
    Example:
      corvo version
    """
    print(f"corvo {__version__}")


if __name__ == "__main__":
    main()
