"""What a support bundle holds, and how it is packed. Everything passes the redaction; no payload is asked for.

A part that cannot be had is a part with the reason: the bundle is made when something is broken.
"""

import io
import os
import platform
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec

from corvo import __version__
from corvo.cli.diagnosis.machine import directory_checks, machine_checks
from corvo.cli.diagnosis.redaction import HIDDEN, Redaction
from corvo.cli.diagnosis.remote import server_checks
from corvo.client.calls import ServerRefused
from corvo.client.http import Client, Unreachable
from corvo.runtime.process import RUN, read_settings
from corvo.runtime.settings import Settings, names

LOG_BYTES = 2 << 20  # the end of each log
METRICS_BYTES_MAX = 8 << 20
SECRET_BYTES_MAX = 64 << 10
SECRET_FILES = ("admin_password_file", "oidc_client_secret_file", "cluster_secret_file")
PACKAGES = ("msgspec", "httpx", "plyvel", "pyzmq", "hypercorn", "starlette", "sqlalchemy", "supervisor", "uvloop")
PRIVATE = 0o600


class BundlePart(NamedTuple):
    name: str
    text: str


class Origin(NamedTuple):
    client: Client | None  # None: no server is asked
    data_dir: Path | None
    logs: tuple[Path, ...]
    secrets: tuple[str, ...]  # that the caller knows


def parts_of(origin: Origin) -> Iterator[BundlePart]:
    settings, trouble = _settings_of(origin.data_dir)
    redaction = Redaction([*origin.secrets, *(secrets_of(settings) if settings else ())])

    def part(name: str, ask: Callable[[], Any]) -> BundlePart:
        return BundlePart(name, redaction.of(_told(ask)))

    yield part("versions.json", _versions)
    client = origin.client
    if client is not None:
        yield part("server/info.json", client.info)
        yield part("server/status.json", client.cluster_status)
        yield part("server/queues.json", client.queues)
        yield part("server/workers.json", client.workers)
        yield part("server/doctor.json", lambda: list(server_checks(client)))
        yield part("server/metrics.txt", lambda: _metrics(client))
    data_dir = origin.data_dir
    if data_dir is not None:
        yield part("node/doctor.json", lambda: [*machine_checks(), *directory_checks(data_dir)])
        yield part("node/settings.json", lambda: _without_secrets(settings) if settings else trouble)
        yield part("node/files.txt", lambda: _files(data_dir))
    for number, path in enumerate(origin.logs, 1):
        yield part(f"logs/{number}-{path.name}", lambda path=path: _end_of(path))  # type: ignore[misc]  # bound now


def pack(parts: Iterator[BundlePart], target: Path, now: float) -> int:
    """Its size. Readable by its maker alone, and whole or not there."""
    beside = target.with_name(f"{target.name}.part")
    beside.touch(PRIVATE, exist_ok=True)
    beside.chmod(PRIVATE)
    folder = target.name.removesuffix(".gz").removesuffix(".tar")
    try:
        with tarfile.open(beside, "w:gz") as archive:
            for part in parts:
                content = part.text.encode(errors="replace")
                entry = tarfile.TarInfo(f"{folder}/{part.name}")
                entry.size, entry.mtime, entry.mode = len(content), int(now), PRIVATE
                archive.addfile(entry, io.BytesIO(content))
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
    return target.stat().st_size


def secrets_of(settings: Settings) -> Iterator[str]:
    """Contents of the files that the settings name. One that we may not read cannot come into the bundle either."""
    for name in SECRET_FILES:
        path = getattr(settings, name)
        if path:
            try:
                with Path(path).open("rb") as file:
                    yield file.read(SECRET_BYTES_MAX).decode("latin-1").strip()
            except OSError:
                continue


def _settings_of(data_dir: Path | None) -> tuple[Settings | None, str]:
    if data_dir is None:
        return None, ""
    try:
        return read_settings(data_dir / RUN), ""
    except (OSError, msgspec.MsgspecError) as error:
        return None, f"there are no settings of a run: {error}"


def _without_secrets(settings: Settings) -> dict[str, str]:
    """Paths of secret files stay: they are no secrets. An address of a database loses its password by its shape."""
    return {name: str(getattr(settings, name)) for name in names()}


def _told(ask: Callable[[], Any]) -> str:
    try:
        found = ask()
    except ServerRefused as refused:
        found = f"not to be had: {refused.message} ({refused.code})"
    except (Unreachable, httpx.HTTPError, OSError) as error:
        found = f"not to be had: {error}"
    return found if isinstance(found, str) else msgspec.json.format(msgspec.json.encode(found)).decode()


def _versions() -> dict[str, Any]:
    packages = {}
    for name in PACKAGES:
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = "not installed"
    return {
        "corvo": __version__,
        "python": sys.version,
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": packages,
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _metrics(client: Client) -> str:
    with client.open_stream("/metrics", {}, {}, silence_s=10.0) as answer:
        content = b""
        for piece in answer.iter_bytes():
            content += piece
            if len(content) > METRICS_BYTES_MAX:
                break
        return content[:METRICS_BYTES_MAX].decode(errors="replace")


def _files(data_dir: Path) -> str:
    """Names, sizes and modes, two levels deep; nothing is opened."""
    lines = []
    for path in sorted([*data_dir.glob("*"), *data_dir.glob("*/*")]):
        found = path.lstat()
        lines.append(f"{found.st_mode & 0o7777:04o} {found.st_size:>12} {path.relative_to(data_dir)}")
    return "\n".join(lines) + "\n"


def _end_of(path: Path) -> str:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - LOG_BYTES))
        text = file.read(LOG_BYTES).decode(errors="replace")
    # A secret that was cut in two would have no shape: the first line is left out.
    return text if size <= LOG_BYTES else f"{HIDDEN} the first {size - LOG_BYTES} bytes\n" + text.partition("\n")[2]
