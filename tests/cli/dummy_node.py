"""Not a test: a node whose processes are scripts that a test wrote.

`python dummy_node.py SETTINGS_JSON PROGRAMS_JSON MEETING_JSON` does what `corvo server` does, but for the programs.
"""

import sys

import msgspec

from corvo.cli.supervise.programs import Program
from corvo.cli.supervise.server import CannotStart, serve
from corvo.runtime.settings import Settings

if __name__ == "__main__":
    settings = msgspec.json.decode(sys.argv[1], type=Settings)
    programs = msgspec.json.decode(sys.argv[2], type=list[Program])
    meeting = msgspec.json.decode(sys.argv[3], type=list[str])
    try:
        sys.exit(serve(settings, programs, meeting))
    except CannotStart as error:
        print(f"corvo: {error}", file=sys.stderr)
        sys.exit(2)
