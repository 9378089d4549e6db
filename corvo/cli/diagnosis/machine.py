"""Measurements on this machine, for `corvo doctor --data-dir`. A directory that is missing is not made."""

import ctypes
import os
import resource
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from corvo.cli.diagnosis import verdicts
from corvo.cli.diagnosis.verdicts import Check, Directory, Free

SYNCS = 40
SYNC_BYTES = 4096
SYNCS_S_MAX = 10.0  # a sick disk is known before the last of them
_TIME_ERROR = 5  # of adjtimex: not synchronised
_TIMEX_BYTES = 512  # more than the kernel writes


def machine_checks() -> Iterator[Check]:
    yield verdicts.open_files(*resource.getrlimit(resource.RLIMIT_NOFILE))
    yield verdicts.sqlite(_sqlite_version())
    yield verdicts.clock_discipline(_is_clock_synchronised())


def directory_checks(data_dir: Path) -> Iterator[Check]:
    found = look_at(data_dir)
    checked = verdicts.directory(found)
    yield checked
    place = Path(found.path if found.is_directory else found.parent)
    usage = os.statvfs(place)
    yield verdicts.space(Free(usage.f_bavail * usage.f_frsize, usage.f_blocks * usage.f_frsize))
    yield verdicts.filesystem(filesystem_of(place, Path("/proc/self/mounts").read_text()))
    if found.is_writable and checked.verdict != "fail":
        yield _sync_check(place)


def look_at(data_dir: Path) -> Directory:
    path = data_dir.absolute()
    parent = path
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    if parent != path:
        return Directory(str(path), False, False, 0, True, os.access(parent, os.W_OK | os.X_OK), str(parent))
    found = path.stat()
    return Directory(
        path=str(path),
        exists=True,
        is_directory=stat.S_ISDIR(found.st_mode),
        mode=stat.S_IMODE(found.st_mode),
        is_ours=found.st_uid == os.geteuid(),
        is_writable=os.access(path, os.W_OK | os.X_OK),
        parent=str(path.parent),
    )


def filesystem_of(place: Path, mounts: str) -> str:
    """The kind of the mount that is nearest; the last one where several are on top of each other."""
    best, kind = "", ""
    for line in mounts.splitlines():
        _, mounted, found, *_ = line.split(" ")
        mounted = mounted.replace("\\040", " ")
        if place.resolve().is_relative_to(mounted) and len(mounted) >= len(best):
            best, kind = mounted, found
    return kind


def _sync_check(place: Path) -> Check:
    spans_ms: list[float] = []
    end = time.monotonic() + SYNCS_S_MAX
    try:
        with tempfile.TemporaryFile(dir=place, prefix=".corvo-doctor-", buffering=0) as file:
            while len(spans_ms) < SYNCS and (not spans_ms or time.monotonic() < end):
                begin = time.perf_counter()
                file.write(bytes(SYNC_BYTES))
                os.fdatasync(file.fileno())
                spans_ms.append((time.perf_counter() - begin) * 1000)
    except OSError as error:
        return Check("fsync", "fail", f"a file cannot be written there: {error.strerror}", "mend the disk or its quota")
    return verdicts.sync_time(spans_ms)


def _sqlite_version() -> tuple[int, int, int]:
    major, minor, patch = sqlite3.sqlite_version_info[:3]
    return major, minor, patch


def _is_clock_synchronised() -> bool | None:
    """The kernel keeps the answer of whatever disciplines its clock. None: it does not say, as in some containers."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        state = int(libc.adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES)))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != _TIME_ERROR
