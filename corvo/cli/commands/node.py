"""`corvo node`: mend a node that is stopped. These commands work on its data directory and ask no server."""

from typing import Annotated

import typer

from corvo.cli.commands.requests import MISUSED, REFUSED, stop

app = typer.Typer(
    help="Mend a node that is stopped.",
    no_args_is_help=True,
    rich_markup_mode=None,  # as in main.py
)


@app.command()
def reset(
    shard: Annotated[int, typer.Option(metavar="I", min=0, help="number of the shard")],
    data_dir: Annotated[
        str, typer.Option(metavar="DIR", envvar="CORVO_DATA_DIR", show_envvar=True, help="data directory of the node")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
) -> None:
    """Remove one replica's data; after the next start of the node it is rebuilt from its peers.

    For a replica whose data is damaged or not trusted any more. The other shards of the node are left alone.

    \b
    Examples:
      corvo node reset --shard 2 --data-dir /var/lib/corvo
      corvo node reset --shard 2 --data-dir /var/lib/corvo --yes
    """
    from corvo.cli.supervise import node_reset  # lazy: structlog

    try:
        is_done = node_reset.reset(data_dir, shard, lambda question: yes or typer.confirm(question))
    except node_reset.CannotReset as error:
        stop(MISUSED, str(error))
    if not is_done:
        stop(REFUSED, "nothing was removed")
    print(f"shard {shard} is empty; start the node, and its peers rebuild it")
