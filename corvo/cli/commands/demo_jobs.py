"""Example jobs in all states, made by the requests that producers, workers and people send."""

from collections import Counter
from collections.abc import Callable
from typing import Literal

import msgspec

from corvo.client.answers import FetchedJob
from corvo.client.bodies import AckBody, CancelBody, CreateScheduleBody, EnqueueBody, FailBody, FetchBody, HoldBody
from corvo.client.http import Client

WORKER = "demo-worker"
SCHEDULE = "demo-nightly-report"
QUEUES = {
    "demo.emails": b'{"to":"user-%d@example.com","template":"welcome"}',
    "demo.reports": b'{"customer":%d,"format":"pdf"}',
    "demo.images": b'{"image":%d,"width":800}',
    "demo.billing": b'{"invoice":%d,"amount":99.5}',
}
ERRORS = ("SMTP timeout after 30 s", "connection refused by 10.0.0.5:5432", "out of memory while rendering page 7")
PRIORITIES: tuple[Literal["critical", "high", "normal"], ...] = ("normal", "normal", "high", "critical")
# One round. A worker takes the oldest job of a queue, so pending ones come last.
STATES = ("completed", "completed", "dead", "retrying", "held", "cancelled", "scheduled", *["pending"] * 5)


class DemoMade(msgspec.Struct):
    jobs: dict[str, int]  # by state
    queues: list[str]
    schedule: str

    def sentence(self) -> str:
        states = ", ".join(f"{count} {state}" for state, count in sorted(self.jobs.items()))
        return f"{sum(self.jobs.values())} jobs ({states}) in {', '.join(self.queues)}; schedule {self.schedule}"


def seed_demo(client: Client, count: int, tell: Callable[[], None] = lambda: None) -> DemoMade:
    """`tell` is called after each job."""
    wanted = sorted((STATES[number % len(STATES)] for number in range(count)), key=STATES.index)
    made: Counter[str] = Counter()
    for number, state in enumerate(wanted):
        made[_make(client, number, state)] += 1
        tell()
    client.create_schedule(
        CreateScheduleBody(name=SCHEDULE, queue="demo.reports", cron="0 3 * * *", payload=msgspec.Raw(b'{"all":true}'))
    )
    return DemoMade(dict(made), list(QUEUES), SCHEDULE)


def _make(client: Client, number: int, state: str) -> str:
    """The state that was reached. Another worker may have taken the job first."""
    queue = list(QUEUES)[number % len(QUEUES)]
    job = EnqueueBody(
        queue=queue,
        payload=msgspec.Raw(QUEUES[queue] % number),
        priority=PRIORITIES[number % len(PRIORITIES)],
        tags=msgspec.Raw(b'{"source":"demo","tenant":"%s"}' % (b"acme-corp", b"globex")[number % 2]),
        delay="24h" if state == "scheduled" else None,
    )
    job_id = client.enqueue(job).job_id
    if state == "held":
        client.hold(job_id, HoldBody("waits for a review"))
    elif state == "cancelled":
        client.cancel(job_id, CancelBody(None))
    elif state in ("completed", "dead", "retrying"):
        claimed = client.fetch(FetchBody(queues=[queue], worker_id=WORKER, timeout=0))
        if claimed is None:
            return "pending"
        _settle(client, claimed, state, ERRORS[number % len(ERRORS)])
    return state


def _settle(client: Client, job: FetchedJob, state: str, error: str) -> None:
    if state == "completed":
        client.ack(job.job_id, AckBody(lease_token=job.lease_token, result=msgspec.Raw(b'{"ok":true}')))
    else:
        client.fail(
            job.job_id, FailBody(lease_token=job.lease_token, error=error, retry=state == "retrying", retry_after="1h")
        )
