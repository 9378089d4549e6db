"""`corvo cluster`: show and change the nodes of a cluster and the leaders of its shards."""

from typing import Annotated

import typer

from corvo.cli.commands.requests import Commands, OutputFormat, ServerUrl, Yes, asking, confirm
from corvo.cli.commands.watching import watchable
from corvo.client import DEFAULT_SERVER

CHANGE_S = 30.0  # the answer comes when every shard has committed the change

app = Commands(
    help="Show and change the nodes of a cluster.",
    no_args_is_help=True,
)

NodeName = Annotated[str, typer.Argument(metavar="NODE", help="name of the node, its --node-id")]


@app.command()
@watchable
def status(server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Show nodes, leaders and replicas, with the lag of each replica.

    LAG is the number of entries that the leader has committed and the replica has not applied. HEARD is the time since
    the leader heard from the replica.

    \b
    Examples:
      corvo cluster status
      corvo cluster status --output json | jq '.groups[].replicas[] | select(.lag > 100)'
    """
    from corvo.cli.screen import show_cluster  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        view = client.cluster_status()
    answer(view, output, lambda: show_cluster.status(view))


@app.command()
def add(
    node: NodeName,
    address: Annotated[str, typer.Argument(help="host:port for the other nodes, its --raft-advertise")],
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Add a node to every shard. It votes once it has caught up.

    A node that is started with --join does this by itself.

    \b
    Examples:
      corvo cluster add node-4 db-4:9400
      corvo cluster add node-4 db-4:9400 --server http://db-1:8080 --output json
    """
    from corvo.cli.screen import show_cluster  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.client.bodies import JoinBody  # lazy: msgspec

    with asking(server, timeout_s=CHANGE_S) as client:
        view = client.cluster_join(JoinBody(node_id=node, address=address))
    answer(view, output, lambda: show_cluster.members(view))


@app.command()
def remove(
    node: NodeName, yes: Yes = False, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table"
) -> None:
    """Remove a node from every shard. Stop the node afterwards; its data is no longer used.

    It asks first. Without a terminal it needs --yes.

    \b
    Examples:
      corvo cluster remove node-4
      corvo cluster remove node-4 --server http://db-1:8080 --yes --output json
    """
    from corvo.cli.screen import show_cluster  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.client.bodies import RemoveBody  # lazy: msgspec

    confirm(yes, f"Remove {node} from every shard?")
    with asking(server, timeout_s=CHANGE_S) as client:
        view = client.cluster_remove(RemoveBody(node_id=node))
    answer(view, output, lambda: show_cluster.members(view))


@app.command()
def transfer(
    node: NodeName,
    shard: Annotated[int | None, typer.Option(metavar="I", min=0, help="only this shard; default: all")] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Make a node the leader of one shard, or of all.

    \b
    Examples:
      corvo cluster transfer node-2
      corvo cluster transfer node-2 --shard 3
    """
    from corvo.cli.screen import show_cluster  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.client.bodies import TransferBody  # lazy: msgspec

    with asking(server, timeout_s=CHANGE_S) as client:
        view = client.cluster_transfer(TransferBody(node_id=node, shard=shard))
    answer(view, output, lambda: show_cluster.members(view))
