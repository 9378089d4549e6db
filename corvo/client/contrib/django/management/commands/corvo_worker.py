"""`manage.py corvo_worker`: runs the project's tasks, with its settings loaded."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from .....worker.command import CannotRun, WorkerOptions, run_worker
from ... import corvo_settings


class Command(BaseCommand):
    help = "Run the tasks of this project, until Ctrl-C or SIGTERM"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tasks", nargs="?", help="where the app is, as module:app; default: CORVO['TASKS']")
        parser.add_argument("--queues", default="", help="only these, with commas; default: those of all tasks")
        parser.add_argument("--concurrency", type=int, default=10, help="jobs at a time (10)")
        parser.add_argument("--shutdown-timeout", type=float, default=25.0, help="seconds for running jobs to end (25)")

    def handle(self, *args: Any, **options: Any) -> None:
        target = options["tasks"] or corvo_settings().get("TASKS")
        if not target:
            raise CommandError("name the app, as in shop.tasks:app, or set CORVO['TASKS']")
        worker = WorkerOptions(
            target=target,
            queues=[each for each in options["queues"].split(",") if each],
            concurrency=options["concurrency"],
            shutdown_timeout=options["shutdown_timeout"],
        )
        try:
            code = run_worker(worker, [])
        except CannotRun as error:
            raise CommandError(str(error)) from None
        if code:
            sys.exit(code)
