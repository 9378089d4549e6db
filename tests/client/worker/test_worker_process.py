"""Worker processes: SIGTERM hands jobs back, a lost gateway loses nothing, the command says what is wrong."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chaos import drain_worker, worker_faults
from chaos.node import Node
from chaos.worker_faults import OneServer
from chaos.worker_process import WorkerProcess
from corvo.client.bodies import EnqueueBody
from corvo.client.http import Client
from corvo.client.worker.reload import difference, look
from tests.support.waiting import eventually
from tests.tidy.house import ROOT

pytestmark = pytest.mark.system
WITHIN_S = 60.0


def test_sigterm_under_load_loses_doubles_and_charges_nothing(shared_node: Node, tmp_path: Path) -> None:
    faults = drain_worker.run(shared_node, tmp_path, trials=2)

    assert [fault for fault in faults if "to end" not in fault] == []  # how long it took is for the program to judge


def test_a_worker_survives_the_loss_of_its_gateway(shared_node: Node, tmp_path: Path) -> None:
    assert worker_faults.run(OneServer(shared_node), tmp_path, rounds=2, seed=1) == []


def test_a_second_signal_hands_jobs_back_at_once(shared_node: Node, tmp_path: Path) -> None:
    worker = WorkerProcess(tmp_path, [shared_node.url], "twice", "--shutdown-timeout", str(WITHIN_S * 5))
    try:
        with Client(shared_node.url) as client:
            job_id = client.enqueue(EnqueueBody(queue="twice.deaf", payload={"seconds": 1000.0})).job_id
            eventually(lambda: worker.lines(), "the handler to begin", WITHIN_S)
            worker.signal(signal.SIGTERM)
            eventually(lambda: "no more jobs" in worker.told(), "the first signal to be seen", WITHIN_S)
            worker.signal(signal.SIGTERM)
            eventually(lambda: not worker.is_running, "the worker to end", WITHIN_S)
            eventually(lambda: client.get_job(job_id).state == "pending", "the job to be handed back", WITHIN_S)
            assert client.get_job(job_id).attempt == 0
    finally:
        worker.kill()
    assert worker.exit_code == 1


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("nowhere:app", "there is no module 'nowhere'"),
        ("chaos.worker_app:jobs", "has no 'jobs'"),
        ("chaos.worker_app:QUEUES", "is a str, and not an app"),
        ("chaos.worker_app:app --queues unknown", "no task and no handler is registered for unknown"),
    ],
)
def test_a_wrong_command_is_told_in_a_sentence(target: str, told: str) -> None:
    command = [sys.executable, "-m", "corvo.client.worker", *target.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WITHIN_S, check=False)

    assert (done.returncode, done.stderr.startswith("error: "), told in done.stderr) == (2, True, True), done.stderr


def test_reload_starts_again_when_a_file_changes(tmp_path: Path) -> None:
    program = tmp_path / "jobs.py"
    program.write_text("print('first', flush=True)\nimport time\ntime.sleep(600)\n")
    code = f"from corvo.client.worker.reload import run_reloading\nrun_reloading([{sys.executable!r}, 'jobs.py'])"
    out = tmp_path / "out"
    with out.open("wb") as output:
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        handle = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=output, stderr=output, env=environ)
    try:
        eventually(lambda: "first" in out.read_text(), "the first start", WITHIN_S)
        program.write_text("print('second', flush=True)\nimport time\ntime.sleep(600)\n")
        eventually(lambda: "second" in out.read_text(), "the second start", WITHIN_S)
        handle.terminate()
        handle.wait(WITHIN_S)
    finally:
        handle.kill()
        handle.wait()
    assert "jobs.py has changed" in out.read_text()


def test_changes_are_files_that_were_written_came_or_went(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "b.py").write_text("1")
    before = look(tmp_path)

    assert set(before) == {tmp_path / "a.py"}
    assert difference(before, look(tmp_path)) is None
    (tmp_path / "c.py").write_text("1")
    assert difference(before, look(tmp_path)) == tmp_path / "c.py"
