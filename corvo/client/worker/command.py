"""`corvo worker module:app`, and `python -m corvo_client.worker module:app` where only the client is installed.

Exit codes: 0 stopped, every job reported; 1 stopped by force, or the server could not be told; 2 wrong usage.
"""

import argparse
import importlib
import logging
import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from .reload import run_reloading

MISUSED = 2


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    target: str  # module:app
    queues: list[str] = []  # none: those of all tasks
    concurrency: int = 10
    server: str | None = None
    shutdown_timeout: float = 25.0
    lease: float = 30.0
    prefetch: int | None = None
    worker_id: str | None = None
    health: str | None = None
    log_level: str = "info"
    reload: bool = False


class CannotRun(ValueError):
    """What is wrong with the command line, in a sentence."""


def run_worker(options: WorkerOptions, command: list[str]) -> int:
    """`command` starts this worker again, without reloading. Raises `CannotRun`."""
    if options.reload:
        return run_reloading(command)
    logging.basicConfig(
        level=options.log_level.upper(), format="%(asctime)s %(levelname)-7s %(name)s: %(message)s", stream=sys.stderr
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)
    app = find_app(options.target)
    if options.server is not None:
        app.servers = [each.strip() for each in options.server.split(",")]
    # The worker of the package that the app comes from: there are two names for it, and both may be installed.
    library = importlib.import_module(type(app).__module__.rpartition(".")[0] + ".worker")
    try:
        worker = library.Worker(
            app,
            queues=options.queues or None,
            concurrency=options.concurrency,
            shutdown_timeout=options.shutdown_timeout,
            lease=options.lease,
            prefetch=options.prefetch,
            worker_id=options.worker_id,
            health=options.health,
        )
        code: int = worker.run()
    except (LookupError, ValueError) as error:
        raise CannotRun(str(error)) from None
    return code


def find_app(target: str) -> Any:
    """The app in `module:name`; `name` is `app` unless it is given."""
    module_name, _, name = target.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there, and what it imports is not
        raise CannotRun(f"there is no module {module_name!r} here or on PYTHONPATH") from None
    found = getattr(module, name or "app", None)
    if found is None:
        raise CannotRun(f"the module {module_name!r} has no {name or 'app'!r}: name the app, as in {module_name}:jobs")
    if not (hasattr(found, "tasks") and type(found).__module__.endswith(".worker.app")):
        raise CannotRun(f"{target} is a {type(found).__name__}, and not an app: expected a Corvo()")
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m corvo_client.worker", description="Runs the tasks of an app.")
    parser.add_argument("target", metavar="MODULE:APP", help="where the app is, such as shop.jobs:app")
    queues, slots = os.environ.get("CORVO_QUEUES", ""), os.environ.get("CORVO_CONCURRENCY", "10")
    parser.add_argument("--queues", default=queues, metavar="A,B", help="only these [CORVO_QUEUES]; default: all")
    parser.add_argument("--concurrency", "-c", type=int, default=slots, metavar="N", help="[CORVO_CONCURRENCY] (10)")
    parser.add_argument("--server", help="address, or several with commas; default: the app's")
    parser.add_argument(
        "--shutdown-timeout", type=float, default=25.0, metavar="S", help="for running jobs to end (25)"
    )
    parser.add_argument("--lease", type=float, default=30.0, metavar="S", help="of a claim; heartbeats renew it (30)")
    parser.add_argument("--prefetch", type=int, metavar="N", help="jobs claimed ahead; default: by how long they take")
    parser.add_argument("--worker-id", help="default: host, process and a random part")
    parser.add_argument("--health", metavar="HOST:PORT", help="serve /healthz and /metrics there")
    parser.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    parser.add_argument("--reload", action="store_true", help="start again when a .py file below this folder changes")
    known = vars(parser.parse_args(arguments))
    known["queues"] = [each for each in known["queues"].split(",") if each]
    command = [sys.executable, "-m", __package__ or "", *(one for one in arguments if one != "--reload")]
    try:
        return run_worker(WorkerOptions(**known), command)
    except CannotRun as error:
        sys.stderr.write(f"error: {error}\n")
        return MISUSED
