"""Not a test: `corvo local` whose nodes are a script that a test wrote.

`python dummy_local.py WISHES_JSON SCRIPT OUTPUT` starts `SCRIPT NODE PORT` for each node.
"""

import sys
from pathlib import Path

import msgspec

from corvo.cli.commands.local import run_local
from corvo.cli.supervise.local_layout import Layout, LayoutOptions, NodePlace
from corvo.cli.supervise.server import CannotStart


def command_of(place: NodePlace, layout: Layout, data_dir: Path, wishes: LayoutOptions) -> list[str]:
    return [sys.executable, sys.argv[2], place.node_id, str(place.port)]


if __name__ == "__main__":
    try:
        sys.exit(run_local(msgspec.json.decode(sys.argv[1], type=LayoutOptions), sys.argv[3], command_of))
    except CannotStart as error:
        print(f"corvo: {error}", file=sys.stderr)
        sys.exit(2)
