"""The servers behind the rivals, started on free loopback ports with their own directories, ended by handle."""

import os
import pwd
import shutil
import socket
import subprocess
import urllib.request
from pathlib import Path

from benchmarks.processes import Program, python

READY_S_MAX = 30.0
POSTGRES_USER = "postgres"  # its server refuses to run as root


class Missing(Exception):
    """Something is not installed; the message names it."""


class Server:
    """A program that listens on a port. `durability` states what a crash may lose."""

    scheme = ""
    durability = ""

    def __init__(self, folder: Path, is_durable: bool) -> None:
        folder.mkdir(parents=True)
        self.port = _free_port()
        self.program = Program(self.command(folder, is_durable), folder.with_name(folder.name + ".log"))
        try:
            self.program.await_ready(self.is_ready, READY_S_MAX, self.scheme)
        except BaseException:
            self.program.kill()
            raise

    def command(self, folder: Path, is_durable: bool) -> list[str]:
        raise NotImplementedError

    @classmethod
    def require(cls) -> None:
        raise NotImplementedError

    @classmethod
    def says(cls, is_durable: bool) -> str:
        raise NotImplementedError

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def is_ready(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1.0).close()
        except OSError:
            return False
        return True

    def stop(self) -> None:
        self.program.stop()


class Redis(Server):
    scheme = "redis"

    @classmethod
    def require(cls) -> None:
        _find("redis-server")

    @classmethod
    def says(cls, is_durable: bool) -> str:
        if is_durable:
            return "Redis with appendonly, appendfsync always"
        return "Redis as it comes: a snapshot after minutes, so a crash loses minutes"

    def command(self, folder: Path, is_durable: bool) -> list[str]:
        durable = ["--appendonly", "yes", "--appendfsync", "always"] if is_durable else []
        place = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder)]
        return [_find("redis-server"), *place, *durable]


class CorvoServer(Server):
    scheme = "http"

    @classmethod
    def require(cls) -> None:
        """It is this tree."""

    @classmethod
    def says(cls, is_durable: bool) -> str:
        return "Corvo as it comes: fsync on, a job that was acknowledged is on disk"

    def command(self, folder: Path, is_durable: bool) -> list[str]:
        return python("-m", "corvo.cli.main", "server", "--data-dir", str(folder), "--bind", f"127.0.0.1:{self.port}")

    def is_ready(self) -> bool:
        """It listens before it can serve."""
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=1.0) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


class Beanstalkd(Server):
    scheme = "beanstalkd"

    @classmethod
    def require(cls) -> None:
        _find("beanstalkd")

    @classmethod
    def says(cls, is_durable: bool) -> str:
        if is_durable:
            return "beanstalkd with a log that is synced at each write"
        return "beanstalkd as it comes: in memory only, so a crash loses all"

    def command(self, folder: Path, is_durable: bool) -> list[str]:
        durable = ["-b", str(folder), "-f", "0"] if is_durable else []
        return [_find("beanstalkd"), "-l", "127.0.0.1", "-p", str(self.port), *durable]


class Postgres(Server):
    scheme = "postgres"

    @classmethod
    def require(cls) -> None:
        _find("initdb"), _find("postgres")
        if os.geteuid() == 0:
            _find("setpriv")
            try:
                pwd.getpwnam(POSTGRES_USER)
            except KeyError:
                raise Missing(f"a user {POSTGRES_USER}") from None

    @classmethod
    def says(cls, is_durable: bool) -> str:
        return "PostgreSQL as it comes: each commit is synced"

    @property
    def url(self) -> str:
        return f"postgres://{POSTGRES_USER}@127.0.0.1:{self.port}/postgres"

    def command(self, folder: Path, is_durable: bool) -> list[str]:
        data, user = folder / "data", []
        if os.geteuid() == 0:
            for each in (folder.parents[1], folder.parent):  # PostgreSQL's user must get through
                each.chmod(0o711)
            shutil.chown(folder, POSTGRES_USER)
            user = ["setpriv", f"--reuid={POSTGRES_USER}", f"--regid={POSTGRES_USER}", "--clear-groups"]
        make = [*user, _find("initdb"), "-D", str(data), "-U", POSTGRES_USER, "--auth=trust"]
        subprocess.run(make, check=True, capture_output=True, timeout=60)
        place = ["-D", str(data), "-p", str(self.port), "-c", "listen_addresses=127.0.0.1"]
        return [*user, _find("postgres"), *place, "-c", f"unix_socket_directories={folder}"]

    def is_ready(self) -> bool:
        """It listens before it can serve."""
        probe = [_find("pg_isready"), "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(probe, capture_output=True, timeout=10, check=False).returncode == 0


def _find(program: str) -> str:
    paths = [os.environ.get("PATH", ""), *sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")))]
    found = shutil.which(program, path=os.pathsep.join(paths))
    if found is None:
        raise Missing(f"the program {program}")
    return found


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
