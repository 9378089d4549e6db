"""The glue for Django in a project of its own: settings, `on_commit`, `manage.py corvo_worker`."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from corvo.testing.server import CorvoTestServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.system
ROOT = Path(__file__).parents[3]
SETTINGS = """
import os
SECRET_KEY = "tests"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db"}}
INSTALLED_APPS = ["corvo.client.contrib.django"]
USE_TZ = True
CORVO = {"SERVER": os.environ["SHOP_CORVO"], "TASKS": "tasks:app"}
"""
TASKS = """
from corvo.client.contrib.django import make_app

app = make_app()


@app.task("shop.ship")
def ship(order: int) -> str:
    from django.db import connection
    with connection.cursor() as cursor:
        cursor.execute("select %s + 1", [order])
        return f"shipped {cursor.fetchone()[0]}"
"""
USE = """
import django
django.setup()
from django.db import transaction
from corvo.client.contrib.django import enqueue_on_commit
from tasks import app, ship

with transaction.atomic():
    enqueue_on_commit(app, ship.s(1))
    assert not [queue for queue in app.client.queues() if queue.name == "shop.ship"], "not before the commit"
try:
    with transaction.atomic():
        enqueue_on_commit(app, ship.s(2))
        raise ZeroDivisionError
except ZeroDivisionError:
    pass
enqueue_on_commit(app, ship.s(3))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in {"shop_settings": SETTINGS, "tasks": TASKS, "use": USE}.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def environment(server: CorvoTestServer, **more: str) -> dict[str, str]:
    given = {"DJANGO_SETTINGS_MODULE": "shop_settings", "SHOP_CORVO": server.url, "PYTHONPATH": str(ROOT)}
    return {**os.environ, **given, **more}


def run(project: Path, server: CorvoTestServer, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *words],
        cwd=project,
        env=environment(server),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_jobs_of_committed_transactions_are_run_by_the_command(project: Path, corvo_server: CorvoTestServer) -> None:
    used = run(project, corvo_server, "use.py")
    assert used.returncode == 0, used.stderr
    jobs = corvo_server.jobs("shop.ship")
    assert [job.payload for job in jobs] == [{"order": 1}, {"order": 3}]

    with (project / "worker.log").open("w") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", "django", "corvo_worker", "--concurrency", "2"],
            cwd=project,
            env=environment(corvo_server),
            stderr=log,
        )
    try:
        eventually(lambda: {job.state for job in corvo_server.jobs("shop.ship")} == {"completed"}, within_s=30)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0, (project / "worker.log").read_text()
    finally:
        worker.kill()
        worker.wait()

    assert [corvo_server.client.get_job(job.id).result for job in jobs] == ["shipped 2", "shipped 4"]


def test_a_typing_mistake_in_the_settings_and_a_missing_app_are_told(
    project: Path, corvo_server: CorvoTestServer
) -> None:
    missing = run(project, corvo_server, "-m", "django", "corvo_worker", "nowhere:app")
    (project / "shop_settings.py").write_text(SETTINGS.replace('"TASKS"', '"TASK"'))
    mistaken = run(project, corvo_server, "-m", "django", "corvo_worker")

    assert "there is no module 'nowhere'" in missing.stderr and missing.returncode == 1
    assert "CORVO has TASK; it may have" in mistaken.stderr
