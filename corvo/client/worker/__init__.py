"""Tasks and the worker that runs them: `Corvo`, its tasks, and how a handler can end.

    app = Corvo("http://localhost:8080")

    @app.task("emails.send", max_retries=5)
    def send(to: str) -> None: ...

    send.enqueue("ada@example.org")

Installed alone it is `corvo_client.worker`; the server's tree has it as `corvo.worker` too. A program that only
enqueues loads no websockets.
"""

from .app import Corvo
from .arguments import BadArguments
from .context import Context, Delivery, NoteRefused, RunningJob, current
from .handles import BatchHandle, JobFailed, JobHandle
from .outcomes import Cancel, Continue, Discard, HandlerOutcome, Hold, Retry, Snooze
from .tasks import Task
from .terms import TaskCall, Terms

__all__ = [
    "BadArguments",
    "BatchHandle",
    "Cancel",
    "Context",
    "Continue",
    "Corvo",
    "Delivery",
    "Discard",
    "HandlerOutcome",
    "Hold",
    "JobFailed",
    "JobHandle",
    "NoteRefused",
    "Retry",
    "RunningJob",
    "Snooze",
    "Task",
    "TaskCall",
    "Terms",
    "current",
]
