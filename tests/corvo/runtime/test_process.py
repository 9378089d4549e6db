"""What every process does at its start."""

import json
import subprocess
import sys

CRASHING = """
from corvo.runtime.process import configure_logging
configure_logging("info", "json", process="shard-0")
raise RuntimeError("a broken invariant")
"""


def test_a_crash_is_one_line_of_the_log_and_still_an_error() -> None:
    done = subprocess.run([sys.executable, "-c", CRASHING], capture_output=True, text=True, timeout=60, check=False)

    (line,) = done.stdout.splitlines()
    event = json.loads(line)
    assert (event["event"], event["level"], event["process"]) == ("crashed", "critical", "shard-0")
    assert "RuntimeError: a broken invariant" in event["exception"]
    assert (done.returncode, done.stderr) == (1, "")
