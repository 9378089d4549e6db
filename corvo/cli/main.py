"""The command `corvo`: every command, its flags and its help.

Exit codes: 0 done; 1 the server refused, cannot be reached, or nothing was changed; 2 wrong usage or settings, or a
destructive command without a terminal and without --yes. An error is one line on standard error that says what to do,
or with --output json one JSON object. Anything else is a bug and shows its traceback.
"""

import copy
import gc
import os
import sys
import time
from typing import Annotated, Literal, NoReturn

import typer

from corvo import __version__
from corvo.cli.commands import (
    audit,
    batch,
    bench,
    bulk,
    cluster,
    completion,
    context,
    derived,
    dev,
    doctor,
    events,
    job,
    keys,
    lists,
    local_nodes,
    mcp,
    namespaces,
    node,
    queue,
    roles,
    schedules,
    search,
    seed,
    support_bundle,
    systemd_unit,
    why,
    worker,
)
from corvo.cli.commands.flags import Flags, load_settings, with_settings
from corvo.cli.commands.help import ACCESS, JOBS, MANY_JOBS, QUEUES, SERVER, TOOLS, WATCH
from corvo.cli.commands.requests import (
    MISUSED,
    OK,
    REFUSED,
    TABLE,
    Commands,
    OutputFormat,
    PriorityName,
    ServerUrl,
    asking,
    expect_json,
    report_error,
    stop,
)
from corvo.cli.commands.times import moment
from corvo.cli.commands.watching import watchable
from corvo.client import DEFAULT_SERVER
from corvo.runtime.read_db import without_password
from corvo.runtime.settings import BadSettings, names

app = Commands(
    name="corvo",
    help="Corvo, a job server: start a server, enqueue jobs, watch and control them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)

# Copies of the core's choices, as in requests.py; a test compares them.
UntilName = Literal["done", "period", "start"]
PolicyName = Literal["fail", "cancel", "run"]


def main() -> NoReturn:
    gc.set_threshold(50_000)  # modules that are loaded stay: looking through them again and again takes 15 % of a start
    # httpx offers a command line of its own if it can be imported. It cannot: that saves 40 ms.
    sys.modules["httpx._main"] = None  # type: ignore[assignment]  # how Python is told that a module is not there
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """The exit code. Only errors that a user can correct are caught."""
    expect_json(arguments)
    try:
        code = _app_for(arguments)(arguments, prog_name="corvo", standalone_mode=False)
    except typer.TyperException as error:
        if message := error.format_message():
            report_error(MISUSED, f"{message.rstrip('.')}; corvo --help shows the usage")
        return error.exit_code
    except typer.Abort:
        report_error(REFUSED, "interrupted")
        return REFUSED
    return code if isinstance(code, int) else OK


def _app_for(arguments: list[str]) -> typer.Typer:
    """typer builds every command that it knows, which takes longer than most of them run. If the first argument names a
    command, only that one is built; everything else (help, completion, a misspelled name) needs them all."""
    name = arguments[0] if arguments else ""
    commands = [one for one in app.registered_commands if name == (one.name or getattr(one.callback, "__name__", ""))]
    groups = [one for one in app.registered_groups if name == one.name]
    if not commands and not groups:
        return app
    smaller = copy.copy(app)
    smaller.registered_commands, smaller.registered_groups = commands, groups
    return smaller


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(f"corvo {__version__}")
        raise typer.Exit


# Not `app.callback`, which would add --output to `corvo` itself.
@typer.Typer.callback(app)
def corvo(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version and exit")
    ] = False,
) -> None:
    pass


@app.command(rich_help_panel=SERVER)
@with_settings
def server(flags: Flags, config: str | None) -> None:
    """Start a server. It runs until Ctrl-C or SIGTERM.

    A flag overrides its environment variable, which overrides the settings file.

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


@app.command(rich_help_panel=SERVER)
@with_settings
def config(flags: Flags, config: str | None, output: str) -> None:
    """Print each setting, its value and where it comes from, as `corvo server` would read them.

    \b
    Examples:
      corvo config
      corvo config --config corvo.toml --shards 8
      corvo config --output json | jq -r .data_dir.value
    """
    from corvo.cli.screen import show  # lazy: rich

    try:
        settings, origins = load_settings(flags, config, os.environ)
    except BadSettings as error:
        stop(MISUSED, *error.faults)
    values = {name: without_password(str(getattr(settings, name))) for name in names()}
    rows = [(name, value, origins[name]) for name, value in values.items()]
    as_json = {name: {"value": value, "from": origin} for name, value, origin in rows}
    show.answer(as_json, output, lambda: show.settings_rows(rows))


app.command(rich_help_panel=SERVER)(dev.dev)
app.add_typer(local_nodes.app, name="local", rich_help_panel=SERVER)


@app.command(rich_help_panel=JOBS)
def enqueue(
    queue: Annotated[str, typer.Argument(help="name of the queue")],
    payload: Annotated[str, typer.Argument(help="JSON; - reads it from standard input")] = "{}",
    priority: Annotated[
        PriorityName, typer.Option(help="higher ones are fetched first; low is the same as normal")
    ] = "normal",
    max_retries: Annotated[int | None, typer.Option(metavar="N", help="number of attempts")] = None,
    scheduled_at: Annotated[
        str | None, typer.Option(metavar="WHEN", help="earliest start: 2030-01-31T09:00:00Z, 2030-01-31 or 1h (later)")
    ] = None,
    delay: Annotated[
        str | None, typer.Option(metavar="SPAN", help="wait this long before it runs, such as 10m")
    ] = None,
    expire_after: Annotated[
        str | None, typer.Option(metavar="SPAN", help="expire it (dead) if it is not done within this time")
    ] = None,
    unique_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="create no job while another one of the queue holds this key")
    ] = None,
    unique_period: Annotated[
        int | None, typer.Option(metavar="SECONDS", help="hold the key no longer than this  [default: 3600]")
    ] = None,
    unique_until: Annotated[UntilName, typer.Option(help="when the key is released")] = "done",
    idempotency_key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="create no job while one with this key is stored, even an ended one"),
    ] = None,
    depends_on: Annotated[list[str] | None, typer.Option(metavar="ID", help="wait for this job; repeatable")] = None,
    on_dependency_failure: Annotated[
        PolicyName, typer.Option(help="what happens when such a job does not complete")
    ] = "fail",
    batch: Annotated[str | None, typer.Option(metavar="ID", help="open batch to add the job to")] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="add a tag; repeatable")] = None,
    tags: Annotated[str | None, typer.Option(metavar="JSON", help="tags as an object")] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Enqueue one job and print its id. Chains and backoffs need `POST /api/v1/enqueue`.

    \b
    Examples:
      corvo enqueue mail '{"to": "ada@example.org"}'
      corvo enqueue mail --priority high --tag team=billing --scheduled-at 2030-01-31T09:00:00Z
      corvo enqueue sync '{"user": 7}' --unique-key user-7 --delay 10m --expire-after 1h
      corvo enqueue cake.serve --depends-on s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 --on-dependency-failure cancel
      cat job.json | corvo enqueue mail -
    """
    from corvo.cli.commands import bodies  # lazy: msgspec
    from corvo.cli.screen import show  # lazy: rich

    try:
        body = bodies.enqueue_body(
            queue,
            sys.stdin.read() if payload == "-" else payload,
            priority=priority,
            max_retries=max_retries,
            tags=tag or [],
            tags_json=tags,
            depends_on=depends_on or [],
            scheduled_at=None if scheduled_at is None else moment(scheduled_at, time.time_ns(), is_ahead=True),
            delay=delay,
            expire_after=expire_after,
            unique_key=unique_key,
            unique_period=unique_period,
            unique_until=unique_until,
            idempotency_key=idempotency_key,
            on_dependency_failure=on_dependency_failure,
            batch_id=batch,
        )
    except ValueError as error:
        stop(MISUSED, str(error))
    with asking(server) as client:
        answer = client.enqueue(body)
    show.answer(answer, output, lambda: show.enqueued(answer))


@app.command(rich_help_panel=JOBS)
def inspect(
    job_id: Annotated[str, typer.Argument(help="id of the job")],
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Show one job with its errors, as its shard knows it now.

    \b
    Examples:
      corvo inspect s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
      corvo inspect s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 --output json
    """
    from corvo.cli.screen import show  # lazy: rich

    with asking(server) as client:
        job = client.get_job(job_id)
    show.answer(job, output, lambda: show.job(job))


app.command(rich_help_panel=JOBS)(why.why)
for _command in (*derived.ACTIONS, job.delete, job.replay):
    app.command(rich_help_panel=JOBS)(_command)
app.add_typer(job.app, name="job", rich_help_panel=JOBS)
app.command(rich_help_panel=MANY_JOBS)(search.search)
app.add_typer(bulk.app, name="bulk", rich_help_panel=MANY_JOBS)
for _command in (lists.dead, lists.held):
    app.command(rich_help_panel=MANY_JOBS)(_command)


@app.command(rich_help_panel=QUEUES)
@watchable
def queues(server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """List all queues: jobs by state, rates, age of the oldest pending job.

    \b
    Examples:
      corvo queues
      corvo queues --watch
      corvo queues --output json | jq '.[] | select(.dead > 0)'
    """
    from corvo.cli.screen import show  # lazy: rich

    with asking(server) as client:
        answer = client.queues()
    show.answer(answer, output, lambda: show.queues(answer))


for _command in (queue.pause, queue.resume, queue.drain, queue.clear, queue.destroy):
    app.command(rich_help_panel=QUEUES)(_command)
app.add_typer(queue.app, name="queue", rich_help_panel=QUEUES)
app.add_typer(schedules.app, name="schedules", rich_help_panel=QUEUES)
app.add_typer(batch.app, name="batch", rich_help_panel=QUEUES)


@app.command(rich_help_panel=WATCH)
@watchable
def status(server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Show the health of the server, its queues and its shards.

    \b
    Examples:
      corvo status
      corvo status --server http://corvo.internal:8080 --output json
    """
    from corvo.cli.screen import show  # lazy: rich
    from corvo.cli.screen.show_status import ServerStatus, show_status  # lazy: rich

    with asking(server) as client:
        answer = ServerStatus.of(client)
    show.answer(answer.as_json(), output, lambda: show_status(answer))


for _command in (lists.workers, lists.throughput, lists.errors, events.events):
    app.command(rich_help_panel=WATCH)(_command)


@app.command(rich_help_panel=WATCH)
def top(
    interval: Annotated[float, typer.Option("--interval", "-d", min=0.2, max=60, help="seconds between updates")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="print one snapshot and exit")] = False,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object per snapshot, one per line")] = False,
    count: Annotated[
        int | None, typer.Option("-n", metavar="COUNT", min=1, help="print COUNT snapshots and exit")
    ] = None,
    pane: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="begin with queues, running, workers, failures, held, shards, errors or jobs"
        ),
    ] = "queues",
    filter: Annotated[str, typer.Option(metavar="WORDS", help="filter of that pane, as after /")] = "",
    job: Annotated[str | None, typer.Option(metavar="ID", help="begin with this job and why it does not run")] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="look only: keys change nothing on the server")
    ] = False,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Watch the server live: health, rates, queues, jobs, workers, shards. Act on jobs and queues.

    ? lists the keys, q quits. Without a terminal it prints one snapshot. --json is the same as --output json.

    \b
    Examples:
      corvo top
      corvo top --pane failures --filter 'queue=mail error_contains=timeout' --read-only
      corvo top --once
      corvo top --json -n 60 > minute.jsonl
    """
    from corvo.cli.commands import top as view  # lazy: rich

    is_json = json or output != "table"
    terminals = (sys.stdin, sys.stdout, sys.stderr)
    has_terminal = all(one.isatty() for one in terminals) and os.environ.get("TERM", "dumb") not in ("", "dumb")
    if is_json or once or count is not None or not has_terminal:
        with asking(server) as client:
            view.write(client, interval, count or 1, is_json)
        return
    session = view.session_of(interval, read_only, pane, filter, job)
    # Short: the next look is another attempt, and the screen says that this one is old.
    with asking(server, timeout_s=5.0, deadline_s=5.0) as client:
        code = view.watch(client, session)
    raise typer.Exit(code)


app.add_typer(audit.app, name="audit", rich_help_panel=WATCH)
app.add_typer(cluster.app, name="cluster", rich_help_panel=SERVER)
app.add_typer(node.app, name="node", rich_help_panel=SERVER)
app.command(rich_help_panel=SERVER)(doctor.doctor)
app.command("support-bundle", rich_help_panel=SERVER)(support_bundle.support_bundle)
app.command("systemd-unit", rich_help_panel=SERVER)(systemd_unit.systemd_unit)
app.add_typer(keys.app, name="keys", rich_help_panel=ACCESS)
app.add_typer(roles.app, name="roles", rich_help_panel=ACCESS)
app.add_typer(namespaces.app, name="namespaces", rich_help_panel=ACCESS)
app.command(rich_help_panel=ACCESS)(keys.whoami)
app.command(rich_help_panel=TOOLS)(worker.worker)
app.command(rich_help_panel=TOOLS)(bench.bench)
app.add_typer(seed.app, name="seed", rich_help_panel=TOOLS)
app.add_typer(context.app, name="context", rich_help_panel=TOOLS)
app.command(rich_help_panel=TOOLS)(completion.completion)
app.command(rich_help_panel=TOOLS)(mcp.mcp)


@app.command(rich_help_panel=TOOLS)
def version(output: OutputFormat = "table") -> None:
    """Print the version of this program.

    \b
    Examples:
      corvo version
      corvo version --output json
    """
    if output == TABLE:
        print(f"corvo {__version__}")
    else:
        from corvo.cli.formats import encoded  # lazy: msgspec

        print(encoded({"version": __version__}, output))


if __name__ == "__main__":
    main()
