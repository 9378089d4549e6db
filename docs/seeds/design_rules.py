"""corvo-design.md: keys, and the rules of jobs: priority, unique keys, retry, rate, batches."""

from docs.seeds.rows import (
    Http,
    Row,
    Section,
    Sql,
    Step,
    active,
    differs,
    enqueued,
    fetched,
    get,
    post,
    works,
)


def _key(name: str, seed: str, where: str, is_same: bool = True) -> Row:
    make = works if is_same else differs
    return make(f"key-{name}", seed, where)


_SEE = "See [keys](keys.md)."

KEYS = Section(
    "Pebble key layout",
    (
        _key("j", "`j|{job_id}`", "The value is MessagePack instead of JSON.", False),
        _key(
            "je",
            "`je|{job_id}\\x00{attempt:4BE}`",
            "By claim instead of attempt: a job run again counts from zero.",
            False,
        ),
        _key(
            "p",
            "`p|{queue}\\x00{priority:1B}{created_ns:8BE}{job_id}`",
            "A position instead of the time: [why](../decisions/0003-positions-instead-of-creation-times.md).",
            False,
        ),
        _key("a", "`a|{queue}\\x00{job_id}` → `lease_expires_ns:8BE`", "With the number of the claim behind it."),
        _key("s", "`s|{queue}\\x00{scheduled_ns:8BE}{job_id}`", _SEE),
        _key("r", "`r|{queue}\\x00{retry_ns:8BE}{job_id}`", _SEE),
        _key("qc", "`qc|{queue}`", "Settings and counts are one record, `qn|{queue}`.", False),
        _key("qn", "`qn|{queue}`", "The queue: settings, counts, cursors."),
        _key("u", "`u|{queue}\\x00{unique_key}` → job and expiry", _SEE),
        _key(
            "l",
            "`l|{queue}\\x00{fetched_ns:8BE}{random:8BE}`",
            "One key for each time, with the number of claims, instead of a random part.",
            False,
        ),
        _key("b", "`b|{batch_id}`", _SEE),
        _key("w", "`w|{worker_id}`", _SEE),
        _key("sc", "`sc|{schedule_id}`", _SEE),
        works(
            "key-fetch",
            "fetch is a seek to `p|{queue}\\x00`",
            "Critical and high ones there; normal ones in an append log, `qa|`.",
            post("/fetch", '{"queues": ["seed.seek"], "worker_id": "w"}', {"job_id": "$FIRST"}),
            before=[enqueued("seed.seek", name="FIRST"), enqueued("seed.seek")],
            fresh=["seed.seek"],
        ),
    ),
)

PRIORITY = Section(
    "Priority",
    (
        works(
            "priority-order",
            "`critical` (0), `high` (1), `normal` (2); FIFO within a tier",
            "Strict within a queue; among queues also [weighted](../how-to/control-queues.md).",
            post("/fetch", '{"queues": ["seed.tiers"], "worker_id": "w"}', {"job_id": "$CRITICAL"}),
            post("/fetch", '{"queues": ["seed.tiers"], "worker_id": "w"}', {"job_id": "$HIGH"}),
            post("/fetch", '{"queues": ["seed.tiers"], "worker_id": "w"}', {"job_id": "$FIRST"}),
            post("/fetch", '{"queues": ["seed.tiers"], "worker_id": "w"}', {"job_id": "$SECOND"}),
            before=[
                enqueued("seed.tiers", name="FIRST"),
                enqueued("seed.tiers", name="SECOND"),
                enqueued("seed.tiers", more='"priority": "high"', name="HIGH"),
                enqueued("seed.tiers", more='"priority": "critical"', name="CRITICAL"),
            ],
            fresh=["seed.tiers"],
        ),
    ),
)

UNIQUE = Section(
    "Unique jobs",
    (
        works(
            "unique-lock",
            "a key in a queue, for a period",
            "See [unique jobs](../how-to/unique-jobs.md).",
            post(
                "/enqueue",
                '{"queue": "emails.send", "unique_key": "sync-user-42", "unique_period": 3600}',
                {"job_id": "$JOB", "status": "duplicate"},
            ),
            before=[enqueued("emails.send", more='"unique_key": "sync-user-42", "unique_period": 3600')],
            fresh=["emails.send"],
        ),
        works(
            "unique-released",
            "the key is free when the job is completed",
            "By `unique_until` also at its start, or only after the period.",
            post("/ack/$JOB"),
            post("/enqueue", '{"queue": "seed.unique", "unique_key": "k"}', {"unique_existing": False}, 201),
            before=active("seed.unique", more='"unique_key": "k"'),
            fresh=["seed.unique"],
        ),
        works("unique-expires", "`expires_at` as a safety net", "The lock ends with its period."),
    ),
)


def _backoff(name: str, delays: str, where: str, tenths: int) -> Row:
    """Three failures of a job with a delay of 0.1 s; `tenths` is the delay after the third."""
    failures = (fetched("seed.backoff"), post("/fail/$JOB", '{"error": "x"}')) * 3
    return works(
        f"backoff-{name}",
        f"`{name}`: {delays}",
        where,
        *failures,
        Sql(
            "select round(10 * 86400 * (julianday(j.scheduled_at) - julianday(max(e.created_at)))) "
            "from jobs j, job_errors e where j.id = '$JOB' and e.job_id = j.id",
            [(float(tenths),)],
        ),
        before=[
            enqueued(
                "seed.backoff",
                more=f'"retry_backoff": "{name}", "retry_base_delay": "100ms", "max_retries": 9',
            )
        ],
        fresh=["seed.backoff"],
    )


RETRY = Section(
    "Retry and backoff",
    (
        works(
            "backoff-none",
            "`none`: at once",
            "See [retries](../how-to/retries.md).",
            post("/fail/$JOB", '{"error": "x"}'),
            fetched("seed.backoff"),
            get("/jobs/$JOB", {"attempt": 2}),
            before=active("seed.backoff", more='"retry_backoff": "none"'),
            fresh=["seed.backoff"],
        ),
        _backoff("fixed", "the same delay every time", "See [retries](../how-to/retries.md).", 1),
        _backoff("linear", "`base_delay` × attempt", "See [retries](../how-to/retries.md).", 3),
        _backoff(
            "exponential",
            "`base_delay` × 2^(attempt-1), capped",
            "5 s, 10 s, 20 s, …; `retry_jitter` shortens them.",
            4,
        ),
        works(
            "retry-dead",
            "no attempt left: `dead`, and a `dead` event",
            "See [events](../how-to/follow-events.md).",
            post("/fail/$JOB", '{"error": "x"}', {"status": "dead", "attempts_remaining": 0}),
            get("/cluster/events?job_ids=$JOB&limit=1000", {"events": [..., {"type": "dead", "job_id": "$JOB"}]}),
            before=active("seed.retries", more='"max_retries": 1'),
            fresh=["seed.retries"],
        ),
    ),
)

RATE = Section(
    "Rate limiting",
    (
        works(
            "rate-throttle",
            '`POST /api/v1/queues/emails.send/throttle` with `{ "rate": 100, "period": "1m" }`',
            "Also with `window_ms`.",
            post("/queues/emails.send/throttle", '{ "rate": 100, "period": "1m" }'),
            before=[enqueued("emails.send")],
            fresh=["emails.send"],
        ),
        works(
            "rate-sliding",
            "a sliding window: no more than `rate` in any span",
            "See [control queues](../how-to/control-queues.md).",
            fetched("seed.rate"),
            post("/fetch", '{"queues": ["seed.rate"], "worker_id": "w", "timeout": 0}', status=204),
            before=[
                enqueued("seed.rate"),
                enqueued("seed.rate"),
                post("/queues/seed.rate/throttle", '{"rate": 1, "window_ms": 3600000}'),
            ],
            fresh=["seed.rate"],
        ),
    ),
)

_BATCH = """{
  "jobs": [
    { "queue": "images.resize", "payload": { "image_id": 1, "size": "thumb" } },
    { "queue": "images.resize", "payload": { "image_id": 2, "size": "thumb" } },
    { "queue": "images.resize", "payload": { "image_id": 3, "size": "thumb" } }
  ],
  "batch": {
    "callback_queue": "images.batch-done",
    "callback_payload": { "album_id": "album_42" }
  }
}"""


# Its own queues: a queue that is emptied ends its batches, and their callbacks come a moment later.
_ENDING = _BATCH.replace("images.resize", "seed.resize").replace("images.batch-done", "seed.batch-done")


def _batch_ended(*answers: str) -> tuple[Step, ...]:
    steps: list[Step] = [Http("POST /api/v1/enqueue/batch", _ENDING, 201, None, {"BATCH": "batch_id"})]
    for answer in answers:
        steps.append(fetched("seed.resize"))
        if answer == "ack":
            steps.append(post("/ack/$JOB"))
        else:
            steps.append(post("/fail/$JOB", '{"error": "x", "retry": false}'))
    return tuple(steps)


_ENDED = ("seed.resize", "seed.batch-done")

BATCHES = Section(
    "Batches",
    (
        works(
            "batch-enqueue",
            "`POST /api/v1/enqueue/batch` with `callback_queue`, `callback_payload`",
            "See [batches](../how-to/batches.md).",
            post("/enqueue/batch", _BATCH, {"job_ids": [str, str, str], "batch_id": str}, 201),
            fresh=["images.resize"],
        ),
        works(
            "batch-callback",
            "when none is pending the callback is made, with how many succeeded and failed",
            "Under `batch` in its payload.",
            post(
                "/fetch",
                '{"queues": ["seed.batch-done"], "worker_id": "w", "timeout": 5}',
                {"payload": {"album_id": "album_42", "batch": {"total": 3, "completed": 2, "dead": 1}}},
            ),
            before=_batch_ended("ack", "ack", "fail"),
            fresh=_ENDED,
        ),
        works(
            "batch-succeeded",
            "`succeeded`, `failed` in batches and callbacks",
            "Beside `completed`, `dead`, `cancelled`, `deleted`.",
            get("/batches/$BATCH", {"succeeded": 2, "failed": 1}),
            post(
                "/fetch",
                '{"queues": ["seed.batch-done"], "worker_id": "w", "timeout": 5}',
                {"payload": {"batch": {"succeeded": 2, "failed": 1}}},
            ),
            before=_batch_ended("ack", "ack", "fail"),
            fresh=_ENDED,
        ),
    ),
)

SECTIONS = (KEYS, PRIORITY, UNIQUE, RETRY, RATE, BATCHES)
