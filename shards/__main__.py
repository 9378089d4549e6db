"""`python -m shards --run-dir run --shard 0`: settings → parts → run. Started by the supervisor in the data dir."""

import argparse
import gc
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import structlog
import zmq

from corvo.model.errors import Corrupt
from corvo.runtime.clustering import advertised_address, is_clustered, parse_peers, shard_address
from corvo.runtime.heartbeat import ProcessHeartbeat
from corvo.runtime.movable_clock import wall_clock
from corvo.runtime.process import (
    Identity,
    Locked,
    configure_logging,
    die_with_parent,
    read_identity,
    read_settings,
    take_lock,
)
from corvo.runtime.settings import Settings, audit_retention_ms, retention_ms, worker_timeout_ms
from corvo.state import keys
from corvo.state.audit_log import AuditKept
from shards import raft
from shards.courier.links import CourierLinks
from shards.errors import Distrusted, Replaced
from shards.group.addresses import AddressBook
from shards.group.config import GroupConfig
from shards.group.link_upkeep import LinkUpkeep, founders_of
from shards.group.messages import group_of
from shards.group.peers import Peers, read_keys
from shards.intake.callers import CallSocket
from shards.loop import Loop
from shards.replica import Replica
from shards.snapshots.transfer import Snapshots, finish_install
from shards.storage.leveldb import Disk, DiskFailed
from shards.storage.paths import Paths
from shards.storage.raft_log import encode
from shards.storage.scrub import Scrub
from shards.storage.sync_thread import SyncThread
from shards.turn import TurnPart, TurnStep
from shards.upkeep import UpkeepSettings

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
    paths = Paths(data_dir / "shards", options.shard)
    try:
        code = _serve(settings, identity, options.shard, options.run_dir, paths)
    except (Corrupt, Distrusted) as error:
        if isinstance(error, Distrusted):
            paths.distrust(str(error))
        log.error("this replica stops", reason=str(error), kind=type(error).__name__, remedy=_remedy(settings, options))
        # A node of a cluster goes on without this replica, until an operator has checked it.
        code = _await_end() if is_clustered(settings) else 1
    except DiskFailed as error:
        log.error("this replica stops", reason=str(error), kind=type(error).__name__)
        code = 1
    lock.close()
    return code


def _remedy(settings: Settings, options: argparse.Namespace) -> str:
    if not is_clustered(settings):
        return "restore the data directory from a backup"
    return (
        f"stop the node, run `corvo node reset --shard {options.shard} --data-dir {settings.data_dir}`, start it again:"
        " the replica is rebuilt from its peers"
    )


def _serve(settings: Settings, identity: Identity, shard: int, run_dir: Path, paths: Paths) -> int:
    started = time.monotonic()
    context: zmq.Context[Any] = zmq.Context()
    label = f"{identity.cluster_id}/{identity.node_id}/{shard}/{identity.shards}/{identity.format}".encode()
    is_synced = settings.fsync == "on"
    paths.check_trusted()
    if finish_install(paths.database):
        log.info("the snapshot from the leader is in place")
    disk = _open_disk(paths, label, is_synced, is_newcomer=identity.founders == ())
    peers = address_book = group_config = None
    heartbeat = ProcessHeartbeat(run_dir, f"shard-{shard}", settings.hang_timeout)
    writing = SyncThread(heartbeat.beat)
    if is_clustered(settings):
        address_book = AddressBook(settings.node_id, shard, parse_peers(settings.peers), identity.nodes)
        peers = Peers(
            context,
            settings.node_id,
            group_of(identity.cluster_id, shard, identity.shards),
            shard_address(settings.raft_bind, shard),
            read_keys(settings.cluster_secret_file),
        )
        group_config = GroupConfig(
            founders=() if disk.get(keys.FORGETFUL) is not None else founders_of(identity),
            address=advertised_address(settings, socket.getfqdn()),
            nodes=address_book.names(),
            links=peers,
            writing=writing,
            snapshots=Snapshots(disk, paths.database, label, peers.send),
            options=_raft_options(settings),
        )
    poller = zmq.Poller()
    callers = CallSocket(_call_address(run_dir, shard))
    courier_links = CourierLinks(
        context, {other: _call_address(run_dir, other) for other in range(identity.shards) if other != shard}, poller
    )
    replica = Replica(
        shard,
        settings.node_id,
        disk,
        callers,
        wall_clock(settings.test_clock, run_dir.parent),
        time.monotonic_ns,
        int.from_bytes(os.urandom(8)),
        is_synced,
        group_config,
        identity.shards,
        courier_links,
        UpkeepSettings(
            retention_ms(settings.retention),
            worker_timeout_ms(settings.worker_timeout),
            AuditKept(audit_retention_ms(settings.audit_retention), settings.audit_records),
        ),
    )
    scrub = Scrub(disk)
    others: list[TurnPart] = [scrub, TurnStep(lambda now_ns: heartbeat.beat())]
    if peers is not None and address_book is not None and group_config is not None:
        others.append(LinkUpkeep(peers, address_book, identity, group_config.address, replica.raft, replica.tables))
    loop = Loop(replica, callers, poller, peers.sockets() if peers is not None else (), others)
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
    scrub.start()
    try:
        loop.run()
        replica.flush()
    except Replaced as replaced:
        log.info("a snapshot from the leader replaces this state", at=str(replaced))
        return 0  # the supervisor starts the replica again, from the new state
    finally:
        heartbeat.end()
        loop.close()
        callers.close()
        courier_links.close()
        if peers is not None:
            peers.close()
        context.term()
        scrub.stop()
        writing.close()
        replica.close()
    log.info("stopped", applied=replica.tables.applied.index)
    return 0


def _raft_options(settings: Settings) -> raft.Options:
    return raft.Options(
        heartbeat_ns=int(settings.heartbeat_interval * 1e9),
        election_ns=int(settings.election_timeout * 1e9),
        # Twice as long, for then the others have certainly elected a leader. On a busy machine the answers of two
        # followers may be late by one time-out, and stepping down would only make it worse.
        quorum_ns=int(settings.election_timeout * 2e9),
        # Nodes may share a disk, and then another leader has no better one.
        disk_stall_ns=int(settings.election_timeout * 10e9),
    )


def _call_address(run_dir: Path, shard: int) -> str:
    return f"ipc://{run_dir}/shard-{shard}.ipc"


def _open_disk(paths: Paths, label: bytes, is_synced: bool, is_newcomer: bool) -> Disk:
    """Created once, and remembered outside LevelDB: a database that vanished is an error, not a fresh start."""
    path = paths.database
    is_reset = paths.reset.exists()
    if not path.exists():
        if paths.made.exists() and not is_reset:
            raise Corrupt(f"{path} is gone, but this replica has existed")
        path.parent.mkdir(exist_ok=True)
        Disk.create(path, label)
    paths.made.touch()
    disk = Disk(path, label, is_synced)
    if is_newcomer and disk.get(keys.INCARNATION) is None:
        # The others may remember a node of this name: this incarnation must come after all of that one's, and must
        # not vote until the group has taken it in.
        disk.write({keys.FORGETFUL: b"\1", keys.INCARNATION: encode(int(time.time()))})
    if is_reset:
        # Its votes are gone with its data: it says so before it can be asked for one.
        disk.write({keys.FORGETFUL: b"\1", keys.INCARNATION: encode(int(paths.reset.read_text()))})
        paths.reset.unlink()
    return disk


def _await_end() -> int:
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    signal.sigwait(ends)
    return 0


if __name__ == "__main__":
    sys.exit(main())
