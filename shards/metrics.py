"""What a replica counts about itself."""

import os
from pathlib import Path

import msgspec

from corvo.queries.cluster import Histogram, JobFigures
from shards.job_metrics import job_figures

_SECONDS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0]
_SIZES = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 4096.0]


def seconds() -> Histogram:
    return Histogram(_SECONDS, [0] * (len(_SECONDS) + 1))


def sizes() -> Histogram:
    return Histogram(_SIZES, [0] * (len(_SIZES) + 1))


class ShardMetrics(msgspec.Struct):
    operations: int = 0
    entries: int = 0
    turns: int = 0
    elections: int = 0  # terms that began while we watched
    batch_size: Histogram = msgspec.field(default_factory=sizes)  # operations in one entry
    queue_time: Histogram = msgspec.field(default_factory=seconds)  # from arrival to the log
    apply_time: Histogram = msgspec.field(default_factory=seconds)  # one entry
    sync_time: Histogram = msgspec.field(default_factory=seconds)  # one batch to disk
    jobs: JobFigures = msgspec.field(default_factory=job_figures)


def resident_bytes() -> int:
    """What this process holds in memory now; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
