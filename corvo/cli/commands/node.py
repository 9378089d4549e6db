"""`corvo node`: repair a stopped node. These commands work on its data directory and need no server."""

from typing import Annotated

import typer

from corvo.cli.commands.requests import MISUSED, Commands, OutputFormat, Yes, confirm, stop

app = Commands(
    help="Repair a stopped node.",
    no_args_is_help=True,
)


@app.command()
def reset(
    shard: Annotated[int, typer.Option(metavar="I", min=0, help="number of the shard")],
    data_dir: Annotated[
        str, typer.Option(metavar="DIR", envvar="CORVO_DATA_DIR", show_envvar=True, help="data directory of the node")
    ],
    yes: Yes = False,
    output: OutputFormat = "table",
) -> None:
    """Remove the data of one replica. The next start of the node rebuilds it from its peers.

    Use it when the data of a replica is damaged. The other shards of the node are not touched.

    \b
    Examples:
      corvo node reset --shard 2 --data-dir /var/lib/corvo
      corvo node reset --shard 2 --data-dir /var/lib/corvo --yes
    """
    from corvo.cli.screen.show import answer, plain  # lazy: rich
    from corvo.cli.supervise import node_reset  # lazy: structlog

    try:
        node_reset.reset(data_dir, shard, lambda question: confirm(yes, question))
    except node_reset.CannotReset as error:
        stop(MISUSED, str(error))
    told = {"status": "reset", "shard": shard, "data_dir": data_dir}
    answer(told, output, lambda: plain(f"shard {shard} is empty; start the node to rebuild it from its peers"))
