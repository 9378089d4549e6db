"""`make fuzz`: look for inputs that break a promise, one target after another, guided by the branches they reach.

    python -m tests.fuzz.run                    every target, an hour each
    python -m tests.fuzz.run jq --seconds 600   one target, ten minutes

Inputs that reach something new are kept under `build/fuzz`, for the next run. An input that breaks a promise ends its
target. It is left there too, with its name: copy it to `tests/fuzz/inputs/<target>/`, and mend the code until
`tests/fuzz/test_inputs.py` passes.
"""

import argparse
import hashlib
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

BUILD = Path(__file__).parents[2] / "build" / "fuzz"
INPUT_BYTES_MAX = 4_096
INPUT_S_MAX = 20
# Target → what counts its branches. Named here, because what was imported already cannot be made to count.
READS = {
    "frame": ("gateway.api.frame_input", "corvo.model.json_input", "corvo.model.null_fields"),
    "messages": ("corvo.wire", "shards.group.messages"),
    "jq": ("gateway.search.jq",),
    "http": ("h11", "gateway.http.fast_path"),
    "websocket": ("websockets.frames", "gateway.http.websocket"),
    "token": ("joserfc", "gateway.access.tokens", "gateway.access.credentials"),
}
_FIGURES = re.compile(r"stat::number_of_executed_units:\s+(\d+)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="target", help=", ".join(READS))
    parser.add_argument("--seconds", type=int, default=3_600)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inside:
        _look(chosen.inside, chosen.seconds)  # does not return
    names = chosen.targets or READS
    return max(_run(name, chosen.seconds) for name in names)


def _run(name: str, seconds: int) -> int:
    """In a process of its own: libFuzzer ends the process that it runs in."""
    place = BUILD / name
    place.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.fuzz.run", "--inside", name, "--seconds", str(seconds)]
    with (place.parent / f"{name}.log").open("wb") as log:
        ended = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
    text = Path(log.name).read_text(errors="replace")
    figures = _FIGURES.search(text)
    executions = int(figures[1]) if figures else 0
    verdict = "nothing found" if ended.returncode == 0 and figures else f"FAILED, see {log.name}"
    print(f"{name:10} {executions:>12,} executions in {seconds} s, {len(list(place.iterdir()))} inputs kept: {verdict}")
    return 0 if ended.returncode == 0 and figures else 1


def _look(name: str, seconds: int) -> None:
    import atheris

    with atheris.instrument_imports(include=list(READS[name])):
        for package in READS[name]:
            importlib.import_module(package)
    from tests.fuzz.targets import TARGETS, kept

    target = TARGETS[name]
    place = BUILD / name
    for data in (*target.beginnings(), *(path.read_bytes() for path in kept(name))):
        (place / hashlib.sha256(data).hexdigest()).write_bytes(data)
    options = {
        "max_total_time": seconds,
        "max_len": INPUT_BYTES_MAX,
        "timeout": INPUT_S_MAX,
        "rss_limit_mb": 2_048,
        "print_final_stats": 1,
        "artifact_prefix": f"{BUILD}/{name}-",
    }
    arguments = [sys.argv[0], str(place), *(f"-{option}={value}" for option, value in options.items())]
    os.chdir(BUILD)
    atheris.Setup(arguments, target.play)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
