"""Tasks and the worker that runs them: `Corvo`, its tasks, and how a handler can end.

    app = Corvo("http://localhost:8080")

    @app.task("emails.send", max_retries=5)
    def send(to: str) -> None: ...

    send.enqueue("ada@example.org")

Installed alone it is `corvo_client.worker`; the server's tree has it as `corvo.worker` too. A program that only
enqueues loads no websockets.
"""

from typing import TYPE_CHECKING, Any

from .app import Corvo
from .arguments import BadArguments
from .context import Context, Delivery, NoteRefused, RunningJob, current
from .handles import BatchHandle, JobFailed, JobHandle
from .outcomes import Cancel, Continue, Discard, HandlerOutcome, Hold, Retry, Snooze
from .tasks import Task
from .terms import TaskCall, Terms

if TYPE_CHECKING:
    from .worker import Worker

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
    "Worker",
    "current",
]


def __getattr__(name: str) -> Any:
    """Loads websockets for a program that runs jobs, not for one that only enqueues them."""
    if name != "Worker":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .worker import Worker  # lazy: see above

    return Worker
