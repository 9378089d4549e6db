"""`python -m shards --run-dir run --shard 0`: settings → parts → run. Started by the supervisor in the data dir."""

import argparse
import gc
import os
import sys
import time
from pathlib import Path

import structlog

from corvo.errors import Corrupt
from corvo.node import (
    Locked,
    configure_logging,
    die_with_parent,
    read_identity,
    read_settings,
    take_lock,
)
from shards.loop import Loop
from shards.replica import Replica
from shards.storage import Disk, DiskFailed

log = structlog.get_logger()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m shards", description="One replica of one shard.")
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--shard", type=int, required=True)
    options = parser.parse_args()
    die_with_parent()
    settings = read_settings(options.run_dir)
    configure_logging(settings.log_level, settings.log_format, process=f"shard-{options.shard}")
    data_dir = options.run_dir.parent
    try:
        lock = take_lock(options.run_dir / f"shard-{options.shard}.lock")
    except Locked as holder:
        log.error("another process serves this shard", pid=str(holder))
        return 1
    identity = read_identity(data_dir)
    if identity is None:
        log.error("the data directory has no identity.json; start it with `corvo server`")
        return 1
    label = f"{identity.cluster_id}/{identity.node_id}/{options.shard}/{identity.shards}/{identity.format}".encode()
    started = time.monotonic()
    try:
        disk = _open_disk(data_dir / "shards" / f"{options.shard:02d}", label, settings.fsync == "on")
        seed = int.from_bytes(os.urandom(8))
        replica = Replica(
            options.shard, settings.node_id, disk, time.time_ns, time.monotonic_ns, seed, settings.fsync == "on"
        )
        loop = Loop(replica, f"ipc://{options.run_dir}/shard-{options.shard}.ipc")
        # What exists now lives as long as the process: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        log.info(
            "serving",
            applied=replica.tables.applied.index,
            queues=len(replica.tables.queues()),
            seconds=round(time.monotonic() - started, 3),
        )
        loop.run()
        loop.close()
    except (Corrupt, DiskFailed) as error:
        log.error("this replica stops", reason=str(error), kind=type(error).__name__)
        return 1
    log.info("stopped", applied=replica.tables.applied.index)
    lock.close()
    return 0


def _open_disk(path: Path, label: bytes, is_synced: bool) -> Disk:
    """Created once, and remembered outside LevelDB: a database that vanished is an error, not a fresh start."""
    marker = path.with_name(path.name + ".made")
    if not marker.exists():
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            Disk.create(path, label)
        marker.touch()
    elif not path.exists():
        raise Corrupt(f"{path} is gone, but this replica has lived; restore it, or remove {marker} to begin empty")
    return Disk(path, label, is_synced)


if __name__ == "__main__":
    sys.exit(main())
