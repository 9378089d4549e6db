"""The machine of a measurement: figures mean nothing without it."""

import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

import msgspec

PACKAGES = ("hypercorn", "h11", "uvloop", "msgspec", "pyzmq", "plyvel", "starlette", "sqlalchemy")
FSYNCS = 50
_CPU_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


class Machine(msgspec.Struct, frozen=True):
    cores: int
    cpu: str
    memory_gb: float
    kernel: str
    python: str
    packages: dict[str, str]


class Durability(msgspec.Struct, frozen=True):
    fsync: str  # the server's setting
    filesystem: str  # of the data directories; on tmpfs an fsync costs nothing and guarantees nothing
    fsync_ms: float  # median of a small write and its fsync in the same directory


class Noise(msgspec.Struct, frozen=True):
    """Other load on the machine: figures of a busy machine are less reliable."""

    load_before: float  # running processes, average of the last minute
    stolen_share: float  # of all CPU time during the run, taken by other guests of the host


def machine() -> Machine:
    return Machine(
        os.cpu_count() or 0,
        _cpu_name(),
        round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        platform.release(),
        sys.version.split()[0],
        {name: _version(name) for name in PACKAGES},
    )


def durability(fsync: str, folder: Path) -> Durability:
    spent = []
    with (folder / "fsync").open("wb", buffering=0) as file:
        for _ in range(FSYNCS):
            started = time.perf_counter()
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            spent.append(time.perf_counter() - started)
    return Durability(fsync, _filesystem(folder), round(median(spent) * 1000, 3))


def cpu_ticks() -> dict[str, int]:
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    return dict(zip(_CPU_FIELDS, map(int, fields), strict=False))


def noise(load_before: float, before: dict[str, int]) -> Noise:
    spent = {name: ticks - before[name] for name, ticks in cpu_ticks().items()}
    return Noise(round(load_before, 2), round(spent["steal"] / max(sum(spent.values()), 1), 4))


def _filesystem(folder: Path) -> str:
    """The type of the innermost mount that holds the folder."""
    path = str(folder.resolve())
    found, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, mount_kind, *_ = line.split()
        if (path == mount or path.startswith(mount.rstrip("/") + "/")) and len(mount) >= len(found):
            found, kind = mount, mount_kind
    return kind


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
