"""`corvo-server` and `corvo-client`: what their files hold, and that they work where nothing else of ours is."""

import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement

import corvo
import corvo.client
from chaos.node import START_S, Node, wait_until
from tests.packaging.builds import CLIENT, SERVER, Environment, build, run
from tests.tidy.test_locks import EXTRAS, pins
from tests.tidy.tracked import ROOT, tracked_files

pytestmark = pytest.mark.system

CONSOLE = "gateway/console/"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("build"))


def wheel_of(dist: Path, name: str) -> Path:
    (wheel,) = dist.glob(f"{name}-*.whl")
    return wheel


def files_of(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_there_are_a_wheel_and_an_sdist_of_each(dist: Path) -> None:
    version = corvo.__version__

    assert corvo.client.__version__ == version
    assert {path.name for path in dist.iterdir()} == {
        f"{name}-{version}{ending}" for name in (SERVER, CLIENT) for ending in (".tar.gz", "-py3-none-any.whl")
    }


def test_their_pages_can_be_shown(dist: Path) -> None:
    run([sys.executable, "-m", "twine", "check", "--strict", *map(str, dist.iterdir())], cwd=dist)


def test_the_server_has_every_file_of_its_packages(dist: Path) -> None:
    """Pages, styles, scripts, SQL and marks of types too: what is not Python must be named in pyproject.toml."""
    wanted = {name for name in tracked_files() if name.startswith(("corvo/", "shards/", "gateway/"))}
    wanted -= {name for name in wanted if name.startswith((f"{CONSOLE}web/", f"{CONSOLE}node.lock"))}  # its sources
    built = {path.relative_to(ROOT).as_posix() for path in (ROOT / CONSOLE / "built").rglob("[!.]*") if path.is_file()}

    files = files_of(wheel_of(dist, SERVER))
    assert files == wanted | built
    assert {"corvo/py.typed", "corvo/client/py.typed"} <= files


def test_the_client_has_the_client_alone(dist: Path) -> None:
    folder = "corvo/client/"
    wanted = {
        f"{CLIENT}/{name.removeprefix(folder)}"
        for name in tracked_files()
        if name.startswith(folder) and not name.startswith(f"{folder}bench/")
    }

    assert files_of(wheel_of(dist, CLIENT)) == wanted
    assert f"{CLIENT}/py.typed" in wanted


def test_they_share_no_file(dist: Path) -> None:
    assert files_of(wheel_of(dist, SERVER)) & files_of(wheel_of(dist, CLIENT)) == set()


@pytest.mark.parametrize("name", [SERVER, CLIENT])
def test_an_sdist_has_its_licence_and_what_its_wheel_has(dist: Path, name: str) -> None:
    (sdist,) = dist.glob(f"{name}-*.tar.gz")
    with tarfile.open(sdist) as archive:
        members = {member.name.partition("/")[2] for member in archive if member.isfile()}

    assert members >= files_of(wheel_of(dist, name)) | {"LICENSE", "README.md", "pyproject.toml"}
    assert metadata_of(wheel_of(dist, name))["License-Expression"] == "Apache-2.0"


@pytest.mark.parametrize("lock", EXTRAS)
@pytest.mark.parametrize("name", [SERVER, CLIENT])
def test_the_locks_hold_what_a_wheel_asks_for(dist: Path, name: str, lock: str) -> None:
    locked = pins((ROOT / lock).read_text())
    needs = [Requirement(text) for text in metadata_of(wheel_of(dist, name)).get_all("Requires-Dist", [])]
    needed = [need for need in needs if need.marker is None or any(map(_in_extra(need), EXTRAS[lock]))]

    assert needed
    assert [str(need) for need in needed if locked[need.name.lower()].version not in need.specifier] == []


def _in_extra(need: Requirement):  # type: ignore[no-untyped-def]
    return lambda extra: need.marker is not None and need.marker.evaluate({"extra": extra})


def test_the_client_needs_few_packages(dist: Path) -> None:
    needs = [Requirement(text) for text in metadata_of(wheel_of(dist, CLIENT)).get_all("Requires-Dist", [])]
    always = {need.name for need in needs if need.marker is None}  # not those of an extra

    assert always <= {"httpx", "msgspec", "websockets"}
    assert {need.name for need in needs} - always == {"django", "sqlalchemy", "starlette"}


def test_a_server_runs_from_its_wheel_outside_the_tree(dist: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "env")
    environment.install(wheel_of(dist, SERVER))
    program = str(environment.folder / "bin" / "corvo")

    assert environment.says("import corvo; print(corvo.__file__)").startswith(str(environment.packages))
    assert corvo.__version__ in run([program, "--version"], cwd=tmp_path)
    with (tmp_path / "log").open("wb") as log:
        command = [program, "server", "--data-dir", str(tmp_path / "data"), "--bind", "127.0.0.1:0"]
        handle = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT)
    node = Node(tmp_path / "data", handle.pid, handle)
    try:
        node.await_healthy(START_S)
        enqueued = httpx.post(f"{node.url}/api/v1/enqueue", json={"queue": "q"}, timeout=20.0)
        page = httpx.get(f"{node.url}/docs", timeout=20.0)
        wait_until(lambda: found(node, "q") == 1, "the mirror to show the job", START_S)
    finally:
        node.stop()

    assert (enqueued.status_code, page.status_code) == (201, 200)


def found(node: Node, queue: str) -> int | None:
    """None while the mirror is not ready."""
    answer = httpx.post(f"{node.url}/api/v1/jobs/search", json={"queue": queue, "consistent": True}, timeout=20.0)
    total: int | None = answer.json().get("total")
    return total


def test_a_client_is_installed_without_a_server(dist: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "env")
    environment.install(wheel_of(dist, CLIENT))

    assert environment.says("import corvo_client; print(corvo_client.Client.__module__)") == "corvo_client.http"
    assert environment.says("import importlib.util as util; print(util.find_spec('corvo'))") == "None"


_WORKER = """
import asyncio
from corvo_client.worker import Corvo, Worker

app = Corvo("{url}")

@app.task("installed.alone")
def double(n: int) -> int:
    return 2 * n

async def main():
    worker = Worker(app)
    await worker.start()
    job = await double.aenqueue(4)
    print(await asyncio.to_thread(job.result))
    assert await worker.stop() == 0

asyncio.run(main())
"""


def test_a_worker_runs_where_only_the_client_is_installed(dist: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "env")
    environment.install(wheel_of(dist, CLIENT))
    node = Node.start(tmp_path / "data")
    try:
        assert environment.says(_WORKER.format(url=node.url)) == "8"
        assert "--concurrency" in run([str(environment.python), "-m", "corvo_client.worker", "--help"], cwd=tmp_path)
    finally:
        node.stop()


def test_both_live_in_one_environment_and_leave_it_alone(dist: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "env")
    for name in (SERVER, CLIENT):
        environment.install(wheel_of(dist, name))
    program = str(environment.folder / "bin" / "corvo")
    use = "import corvo_client, corvo.client as other; print(corvo_client.Client is other.Client)"
    assert environment.says(use) == "False"

    environment.uninstall("corvo-client")
    assert corvo.__version__ in run([program, "--version"], cwd=tmp_path)

    environment.install(wheel_of(dist, CLIENT))
    environment.uninstall("corvo-server")
    assert environment.says("import corvo_client; print(corvo_client.Client.__name__)") == "Client"
