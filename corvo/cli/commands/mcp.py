"""`corvo mcp`: lets a language model look at a server, and operate it if told so."""

import sys
from typing import Annotated

import typer

from corvo.cli.commands.requests import MISUSED, OutputFormat, ServerUrl, asking, stop
from corvo.client import DEFAULT_SERVER


def mcp(
    allow_writes: Annotated[
        bool, typer.Option("--allow-writes", help="offer the tools that change something, too")
    ] = False,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Serve the Model Context Protocol on standard input and output, until the input ends.

    A client such as an editor or an assistant starts this command and speaks to it. Without --allow-writes its tools
    only look. The API key limits them further: give it one whose role has no more than they need.

    \b
    Examples:
      corvo mcp
      corvo mcp --context prod
      corvo mcp --server http://localhost:8080 --allow-writes
    """
    if output != "table":
        stop(MISUSED, "the protocol has one format; leave --output away")
    from corvo import ops, queries  # lazy: every operation
    from corvo.cli.mcp.session import McpSession  # lazy: as above
    from corvo.cli.mcp.tools import tools_of  # lazy: as above

    with asking(server) as client:
        tools = tools_of((*ops.ENDPOINTS, *queries.ENDPOINTS), allow_writes)
        McpSession(client.call, tools, allow_writes).run(sys.stdin.buffer, sys.stdout.buffer)
