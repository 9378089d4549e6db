"""What a measurement means, and what to do about it. Pure: every bound of `corvo doctor` stands here.

`fail`: the server does not start, loses promises or is unavailable. `warn`: it works, but not for long, or not well.
"""

import stat
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from corvo.client.answers import ClusterStatus

Verdict = Literal["ok", "warn", "fail"]

FILES_MIN, FILES_GOOD = 1_024, 16_384  # open files: connections, LevelDB's tables
FREE_BYTES_MIN, FREE_BYTES_GOOD = 1 << 30, 10 << 30
FREE_SHARE_GOOD = 0.1
SYNC_MS_GOOD, SYNC_MS_MAX = 10.0, 100.0  # the median; a turn of a shard waits for one
SYNC_MS_BELIEVED = 0.02  # faster than any disk: nothing was written
CLOCK_S_GOOD, CLOCK_S_MAX = 2.0, 60.0  # whole seconds cross the network, so less says nothing
LAG_MS_GOOD, LAG_MS_MAX = 2_000, 30_000
LAG_ENTRIES_GOOD = 10_000
SQLITE_MIN, SQLITE_GOOD = (3, 34, 0), (3, 51, 3)
NETWORKS = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "ceph", "glusterfs", "fuse.glusterfs")
)
VOLATILE = frozenset(("tmpfs", "ramfs"))


class Check(msgspec.Struct, omit_defaults=True):
    name: str
    verdict: Verdict
    found: str
    remedy: str = ""


class Free(NamedTuple):
    free_bytes: int
    total_bytes: int


class Directory(NamedTuple):
    """A data directory, or where it will be made."""

    path: str
    exists: bool
    is_directory: bool
    mode: int
    is_ours: bool
    is_writable: bool
    parent: str  # the nearest directory that exists


def ok(name: str, found: str) -> Check:
    return Check(name, "ok", found)


def directory(one: Directory) -> Check:
    name = "data directory"
    if not one.exists:
        if one.is_writable:
            return ok(name, f"{one.path} is made by the first start")
        return Check(
            name,
            "fail",
            f"{one.path} is missing and {one.parent} is not ours to write",
            f"mkdir -p {one.path} and chown it",
        )
    if not one.is_directory:
        return Check(name, "fail", f"{one.path} is no directory", "give another --data-dir")
    if not one.is_writable:
        return Check(name, "fail", f"{one.path} cannot be written by this user", "chown it, or run as its owner")
    if not one.is_ours:
        return Check(name, "warn", f"{one.path} belongs to another user", "run doctor as the user that runs the server")
    if one.mode & (stat.S_IRWXO | stat.S_IWGRP):
        return Check(
            name,
            "warn",
            f"others may use {one.path} (mode {one.mode:o}): payloads and keys are in it",
            f"chmod 700 {one.path}",
        )
    return ok(name, f"{one.path}, mode {one.mode:o}")


def space(one: Free) -> Check:
    found = f"{one.free_bytes / 2**30:.1f} GiB free of {one.total_bytes / 2**30:.1f} GiB"
    remedy = "make room, enlarge the disk or shorten --retention: a full disk stops the node"
    if one.free_bytes < FREE_BYTES_MIN:
        return Check("disk", "fail", found, remedy)
    if one.free_bytes < FREE_BYTES_GOOD and one.free_bytes < FREE_SHARE_GOOD * one.total_bytes:
        return Check("disk", "warn", found, remedy)
    return ok("disk", found)


def filesystem(kind: str) -> Check:
    name = "file system"
    if kind in NETWORKS:
        return Check(name, "fail", f"{kind}, over a network", "use a local disk: locks and fsync must hold")
    if kind in VOLATILE:
        return Check(name, "warn", f"{kind}, in memory", "use a disk: a restart of the machine loses every job")
    return ok(name, kind or "unknown")


def sync_time(spans_ms: Sequence[float]) -> Check:
    ordered = sorted(spans_ms)
    median, worst = ordered[len(ordered) // 2], ordered[-1]
    found = f"{median:.2f} ms in the median, {worst:.1f} ms at worst, of {len(ordered)}"
    if median > SYNC_MS_MAX:
        return Check("fsync", "fail", found, "use another disk: every write waits for it, and leaders are lost")
    if median > SYNC_MS_GOOD:
        return Check("fsync", "warn", found, "use a faster disk, such as a local SSD: every write waits for it")
    if median < SYNC_MS_BELIEVED:
        return Check("fsync", "warn", found, "this is faster than a disk: a power cut may lose acknowledged jobs")
    return ok("fsync", found)


def open_files(soft: int, hard: int) -> Check:
    found = f"at most {soft} (hard limit {hard})"
    remedy = f"raise it: ulimit -n {FILES_GOOD}, or LimitNOFILE={FILES_GOOD} in the unit"
    if soft < FILES_MIN:
        return Check("open files", "fail", found, remedy)
    if soft < FILES_GOOD:
        return Check("open files", "warn", found, remedy)
    return ok("open files", found)


def sqlite(version: tuple[int, int, int]) -> Check:
    found = "SQLite " + ".".join(map(str, version))
    if version < SQLITE_MIN:
        return Check("SQLite", "fail", f"{found} has no index of trigrams", "use a Python with SQLite 3.34 or newer")
    more = (
        "" if version >= SQLITE_GOOD else "; only the mirror checkpoints, so the WAL-reset bug before 3.51.3 is avoided"
    )
    return ok("SQLite", found + more)


def clock_discipline(is_synchronised: bool | None) -> Check:
    if is_synchronised is None:
        return ok("clock", "the kernel does not say whether it is synchronised")
    if not is_synchronised:
        return Check("clock", "warn", "the kernel's clock is not synchronised", "run chrony or systemd-timesyncd")
    return ok("clock", "synchronised")


def clock_difference(seconds: float) -> Check:
    name = "server clock"
    found = f"{abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'} this machine's"
    remedy = "synchronise both with NTP: schedules, delays and expiry follow the server's clock"
    if abs(seconds) > CLOCK_S_MAX:
        return Check(name, "fail", found, remedy)
    if abs(seconds) > CLOCK_S_GOOD:
        return Check(name, "warn", found, remedy)
    return ok(name, f"within {CLOCK_S_GOOD:.0f} s of this machine's")


def versions(ours: str, theirs: str) -> Check:
    if ours == theirs:
        return ok("versions", f"command line and server are {ours}")
    return Check("versions", "warn", f"the command line is {ours}, the server {theirs}", "install its version here")


def health(view: ClusterStatus) -> Check:
    found = f"{view.status}: {'; '.join(view.reasons)}" if view.reasons else view.status
    if view.status == "healthy":
        return ok("health", found)
    verdict: Verdict = "warn" if view.status == "degraded" else "fail"
    return Check("health", verdict, found, "see corvo cluster status, and the logs of the node that it names")


def leaders(view: ClusterStatus) -> Check:
    without = [str(group.shard) for group in view.groups if not group.leader_id]
    if without:
        return Check(
            "leaders",
            "fail",
            f"no leader of shard {', '.join(without)}",
            "start the nodes that are down: a majority must run",
        )
    behind = [
        f"shard {group.shard} on {replica.node_id} by {replica.lag}"
        for group in view.groups
        for replica in group.replicas
        if (replica.lag or 0) > LAG_ENTRIES_GOOD
    ]
    if behind:
        return Check("leaders", "warn", f"replicas lag: {'; '.join(behind)}", "wait, or look at that node's disk")
    return ok("leaders", f"{len(view.groups)} of {view.shards} shards have one")


def durability(view: ClusterStatus) -> Check:
    if view.fsync:
        slowest = max((group.sync_ms_avg for group in view.groups), default=0.0)
        return ok("durability", f"fsync on, {slowest:.2f} ms on average at the slowest shard")
    return Check("durability", "warn", "fsync off: a power cut may lose jobs", "start the server with --fsync on")


def lists(view: ClusterStatus) -> Check:
    if view.mirror is None:
        return Check("read.db", "fail", "the mirror does not answer", "see the mirror's log; jobs are not affected")
    found = f"{view.mirror.lag_ms:.0f} ms behind"
    remedy = "wait for the rebuild, or look at the disk's load: lists and search are stale"
    if view.mirror.lag_ms > LAG_MS_MAX:
        return Check("read.db", "fail", found, remedy)
    if view.mirror.lag_ms > LAG_MS_GOOD:
        return Check("read.db", "warn", found, remedy)
    return ok("read.db", found)


def restarts(view: ClusterStatus) -> Check:
    ended = {name: count for name, count in view.restarts.items() if count}
    if not ended:
        return ok("restarts", f"none since {view.node_id} started")
    last = f"; last: {view.incidents[-1].process}, {view.incidents[-1].reason}" if view.incidents else ""
    found = ", ".join(f"{name} {count}" for name, count in sorted(ended.items()))
    return Check("restarts", "warn", f"{found}{last}", "corvo status lists them; the node's log has the reasons")
