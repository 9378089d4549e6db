"""What a test says of the jobs that its program enqueued."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from corvo.client.worker.arguments import to_json
from corvo.client.worker.tasks import Task

SHOWN = 10  # jobs in a message


def check_enqueued(
    jobs_of: Callable[[str], Sequence[Any]], task: Task[..., Any] | str, count: int | None, given: dict[str, Any]
) -> list[Any]:
    """The jobs of the queue whose payload has these values. Fails with what was enqueued instead."""
    queue = task if isinstance(task, str) else task.queue
    wanted = msgspec.json.decode(to_json(given))  # as it looks in a payload
    jobs = jobs_of(queue)
    found = [job for job in jobs if _holds(job.payload, wanted)]
    if len(found) == count or (count is None and found):
        return found
    expected = "a job" if count is None else f"{count} jobs"
    seen = "\n".join(f"  {msgspec.json.encode(job.payload).decode()}" for job in jobs[:SHOWN]) or "  none"
    raise AssertionError(f"expected {expected} on {queue} with {wanted}, found {len(found)}; all of its jobs:\n{seen}")


def _holds(payload: Any, wanted: dict[str, Any]) -> bool:
    if not wanted:
        return True
    return isinstance(payload, dict) and all(name in payload and payload[name] == wanted[name] for name in wanted)
