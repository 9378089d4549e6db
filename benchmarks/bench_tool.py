"""`corvo bench`, as a user would run it, in its own process."""

import subprocess
from typing import Any

import msgspec

from benchmarks.load import Address, LoadFailed
from benchmarks.processes import ROOT, python
from corvo.client.bench.report import BenchReport

MARGIN_S = 120.0


def bench(address: Address, seconds: float, *flags: str) -> BenchReport:
    """Runs it and returns its report; an error in the report ends the measurement."""
    host, port = address
    command = python("-m", "corvo.cli.main", "bench", "--server", f"http://{host}:{port}", "--output", "json", *flags)
    done: subprocess.CompletedProcess[Any] = subprocess.run(
        command, cwd=ROOT, capture_output=True, timeout=seconds + MARGIN_S, check=False
    )
    if not done.stdout:
        raise LoadFailed((done.stderr.decode().strip().splitlines() or ["corvo bench said nothing"])[-1])
    report = msgspec.json.decode(done.stdout, type=BenchReport)
    if report.errors:
        raise LoadFailed(f"corvo bench {' '.join(flags)}: {report.errors}")
    return report
