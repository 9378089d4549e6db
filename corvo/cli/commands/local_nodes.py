"""`corvo local`: a cluster on this machine, and commands to stop, kill and start one of its nodes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from corvo.cli.commands.requests import MISUSED, REFUSED, Commands, OutputFormat, stop
from corvo.model.limits import NODES_MAX, SHARDS_MAX
from corvo.runtime.addresses import PORT_MAX

if TYPE_CHECKING:
    from corvo.cli.supervise.local_control import NodeReport

STOP_S = 60.0  # a node drains its requests first
START_S = 120.0  # and catches up with the others

FsyncName = Literal["on", "off"]
NodeName = Annotated[str, typer.Argument(metavar="NODE", help="name of the node, such as node-2")]
DataDir = Annotated[
    str | None, typer.Option("--data-dir", metavar="DIR", help="directory of all nodes  [default: corvo-local]")
]

app = Commands(invoke_without_command=True)


@app.callback()
def local(
    context: typer.Context,
    nodes: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=NODES_MAX, help="number of nodes  [default: 3]")
    ] = None,
    shards: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=SHARDS_MAX, help="shards of the cluster  [default: 4]")
    ] = None,
    data_dir: Annotated[str, typer.Option(metavar="DIR", help="directory of all nodes")] = "corvo-local",
    fsync: Annotated[FsyncName, typer.Option(help="off: a power cut may lose acknowledged jobs")] = "on",
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=1, max=PORT_MAX, help="first HTTP port; default: free ports"),
    ] = None,
    raft_port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=1, max=PORT_MAX, help="first port between nodes; default: free ports"),
    ] = None,
    tls_cert: Annotated[
        str, typer.Option(metavar="FILE", envvar="CORVO_TLS_CERT", help="certificate of all nodes (PEM): HTTPS only")
    ] = "",
    tls_key: Annotated[
        str, typer.Option(metavar="FILE", envvar="CORVO_TLS_KEY", help="private key of the certificate (PEM)")
    ] = "",
    output: OutputFormat = "table",
) -> None:
    """Start a cluster of several nodes on this machine. It runs until Ctrl-C or SIGTERM.

    Each node is a `corvo server` with its own directory and log below the data directory. The ports are stored there:
    a second start finds the same cluster at the same addresses. With --output json, one object with nodes, addresses
    and process ids is printed when all nodes are ready. The commands below act on nodes of a running cluster.

    \b
    Examples:
      corvo local
      corvo local --nodes 5 --shards 2 --port 8080
      corvo local --data-dir /tmp/cluster --fsync off --output json
      corvo local kill node-2
    """
    if context.invoked_subcommand is not None:
        return
    from corvo.cli.commands.local import run_local  # lazy: rich and httpx
    from corvo.cli.supervise.local_layout import LayoutOptions  # lazy: structlog
    from corvo.cli.supervise.server import CannotStart  # lazy: structlog

    try:
        options = LayoutOptions(data_dir, nodes, shards, port, raft_port, fsync, tls_cert, tls_key)
        code = run_local(options, output)
    except CannotStart as error:
        stop(MISUSED, str(error))
    raise typer.Exit(code)


@app.command()
def status(context: typer.Context, data_dir: DataDir = None, output: OutputFormat = "table") -> None:
    """Show the nodes of a running cluster: state, address, processes.

    \b
    Examples:
      corvo local status
      corvo local status --output json
    """
    from corvo.cli.commands.local import print_status  # lazy: rich and httpx
    from corvo.cli.supervise.local_control import ControlFailed, read_report  # lazy: msgspec

    try:
        report = read_report(_directory(context, data_dir))
    except ControlFailed as error:
        stop(REFUSED, str(error))
    print_status(report, output)


@app.command("kill")
def kill_node(context: typer.Context, node: NodeName, data_dir: DataDir = None, output: OutputFormat = "table") -> None:
    """Kill all processes of one node at once (SIGKILL), like a power cut.

    \b
    Examples:
      corvo local kill node-2
      corvo local kill node-2 --data-dir /tmp/cluster
    """
    from corvo.cli.supervise.local_control import ControlFailed, kill  # lazy: msgspec

    try:
        count = kill(_directory(context, data_dir), node)
    except ControlFailed as error:
        stop(REFUSED, str(error))
    _tell(node, "killed", output, f", {count} processes", processes=count)


@app.command("stop")
def stop_node(context: typer.Context, node: NodeName, data_dir: DataDir = None, output: OutputFormat = "table") -> None:
    """Stop one node (SIGTERM). It finishes its requests and transfers its leaderships.

    \b
    Examples:
      corvo local stop node-2
      corvo local stop node-2 --output json
    """
    from corvo.cli.supervise import local_control  # lazy: msgspec

    try:
        local_control.stop(_directory(context, data_dir), node, STOP_S)
    except local_control.ControlFailed as error:
        stop(REFUSED, str(error))
    _tell(node, "stopped", output)


@app.command("start")
def start_node(
    context: typer.Context, node: NodeName, data_dir: DataDir = None, output: OutputFormat = "table"
) -> None:
    """Start a node again after a stop or a kill, and wait until it is ready.

    \b
    Examples:
      corvo local start node-2
      corvo local start node-2 --output json
    """
    from corvo.cli.commands.local import await_node  # lazy: rich and httpx
    from corvo.cli.supervise import local_control  # lazy: msgspec

    directory = _directory(context, data_dir)
    try:
        local_control.start(directory, node, STOP_S)
        found: NodeReport = local_control.find_node(local_control.read_report(directory), node)
    except local_control.ControlFailed as error:
        stop(REFUSED, str(error))
    if trouble := await_node(directory, found, START_S):
        stop(REFUSED, f"{node} was started but is not ready: {trouble}")
    _tell(node, "ready", output)


def _directory(context: typer.Context, data_dir: str | None) -> Path:
    """--data-dir before or after the command."""
    parent = context.parent
    given = data_dir or (parent.params.get("data_dir") if parent is not None else None)
    return Path(given or "corvo-local").absolute()


def _tell(node: str, status: str, output: str, more: str = "", **fields: int) -> None:
    from corvo.cli.screen.show import answer, plain  # lazy: rich

    answer({"node_id": node, "status": status, **fields}, output, lambda: plain(f"{node}  {status}{more}"))
