"""corvo-design.md: schedules, expiry, cancellation, shutdown, leases, concurrency."""

from docs.seeds.rows import (
    Http,
    Section,
    Shell,
    active,
    differs,
    enqueued,
    fetched,
    get,
    post,
    works,
)

_REPORT = """{
  "name": "daily-report",
  "queue": "reports.generate",
  "cron": "0 9 * * *",
  "timezone": "America/New_York",
  "payload": { "type": "daily" },
  "unique_key": "daily-report"
}"""

SCHEDULES = Section(
    "Scheduled and recurring jobs",
    (
        differs(
            "delayed",
            '`POST /api/v1/enqueue` with `"scheduled_at": "2026-02-12T09:00:00Z"`',
            "A time in the past makes the job pending at once.",
            post(
                "/enqueue",
                '{"queue": "emails.send", "payload": {}, "scheduled_at": "2026-02-12T09:00:00Z"}',
                {"status": "pending"},
                201,
            ),
        ),
        differs(
            "promotion",
            "a loop promotes due jobs every second",
            "Each job when it is due: [due times](../decisions/0004-leases-in-memory-due-times-in-keys.md).",
            fetched("seed.delayed"),
            before=[enqueued("seed.delayed", more='"delay_ms": 200')],
            fresh=["seed.delayed"],
        ),
        works(
            "scheduled-far",
            "any `scheduled_at`, such as the year 2199",
            "Up to the year 2199.",
            post(
                "/enqueue",
                '{"queue": "seed.far", "scheduled_at": "2199-01-01T00:00:00Z"}',
                {"status": "scheduled"},
                201,
            ),
        ),
        works(
            "cron-create",
            "`POST /api/v1/schedules` with `name`, `queue`, `cron`, `timezone`, `payload`, `unique_key`",
            "See [schedules](../how-to/schedules.md).",
            post("/schedules", _REPORT, {"id": str, "name": "daily-report", "timezone": "America/New_York"}, 201),
        ),
        works(
            "schedule-next-run",
            "`next_run`, `last_run` of a schedule",
            "Beside `next_at` and `last_fired_at`.",
            get("/schedules/seed-runs", {"next_run": str, "last_run": ...}),
            before=[Http("POST /api/v1/schedules", _REPORT.replace("daily-report", "seed-runs"), 201)],
        ),
        works(
            "schedule-put-name",
            "`PUT` with the whole schedule, its `name` among it",
            "See [schedules](../how-to/schedules.md).",
            Http(
                "PUT /api/v1/schedules/seed-put", _REPORT.replace("daily-report", "seed-put"), 200, {"name": "seed-put"}
            ),
            before=[Http("POST /api/v1/schedules", _REPORT.replace("daily-report", "seed-put"), 201)],
        ),
        works(
            "cron-leader",
            "only the leader runs the scheduler",
            "The leader of the schedule's shard; a slot fires once, across changes of leader.",
        ),
    ),
)

EXPIRY = Section(
    "Job expiration",
    (
        works(
            "expire-enqueue",
            '`POST /api/v1/enqueue` with `"expire_after": "1h"`',
            "Also as `expire_after_ms`.",
            post("/enqueue", '{"queue": "emails.send", "payload": {}, "expire_after": "1h"}', status=201),
        ),
        works(
            "expire-dead",
            'an expired job is `dead` at once, with the reason "expired"',
            "Whatever attempts are left.",
            Shell(
                'until curl -s "$URL/api/v1/jobs/$JOB" | grep -q \'"dead"\'; do sleep 0.05; done; corvo inspect $JOB',
                ("expired",),
            ),
            before=[enqueued("seed.expired", more='"expire_after_ms": 50')],
        ),
    ),
)

CANCEL = Section(
    "Cancellation",
    (
        works(
            "cancel-pending",
            '`POST /api/v1/jobs/{id}/cancel` of a pending job → `"cancelled"`',
            "See [act on jobs](../how-to/act-on-jobs.md).",
            post("/jobs/$JOB/cancel", "", {"status": "cancelled"}),
            before=[enqueued("seed.cancel")],
        ),
        works(
            "cancel-active",
            '`POST /api/v1/jobs/{id}/cancel` of an active job → `"cancelling"`',
            "The worker has a grace of 30 s.",
            post("/jobs/$JOB/cancel", "", {"status": "cancelling"}),
            post("/heartbeat", '{"jobs": {"$JOB": {}}}', {"jobs": {"$JOB": {"status": "cancel"}}}),
            before=active("seed.cancel"),
            fresh=["seed.cancel"],
        ),
    ),
)

SHUTDOWN = Section(
    "Shutdown, leases, checkpoints",
    (
        works(
            "shutdown-worker",
            "drain a worker: fetch no more, finish, checkpoint, fail with `worker_shutdown`",
            "Rules in [write a worker](../how-to/write-a-worker-in-any-language.md).",
            post("/heartbeat", '{"jobs": {"$JOB": {"checkpoint": {"offset": 47000}}}}'),
            post("/fail/$JOB", '{"error": "worker_shutdown"}', {"status": "retrying"}),
            get("/jobs/$JOB", {"checkpoint": {"offset": 47000}}),
            before=active("seed.shutdown"),
            fresh=["seed.shutdown"],
        ),
        differs(
            "lease-reclaim",
            "a sweep every 10 s puts jobs back whose lease is over",
            "Each lease ends at its own time; a reclaimed job has used an attempt.",
            fetched("seed.lease", "other"),
            before=[
                enqueued("seed.lease"),
                post("/fetch", '{"queues": ["seed.lease"], "worker_id": "w", "lease_duration": 1}'),
            ],
            fresh=["seed.lease"],
        ),
        works(
            "worker-deployment",
            "a Deployment of workers with `CORVO_URL`, `CORVO_QUEUES`, `CORVO_CONCURRENCY`",
            "`corvo worker` reads them: [a Python worker](../how-to/write-a-python-worker.md#stop-a-worker).",
        ),
        works(
            "checkpoint-resume",
            "the checkpoint is in the next fetch",
            "See [long jobs](../how-to/long-jobs.md).",
            post("/heartbeat", '{"jobs": {"$JOB": {"checkpoint": {"offset": 1000}}}}'),
            post("/fail/$JOB", '{"error": "x"}'),
            post(
                "/fetch",
                '{"queues": ["seed.resume"], "worker_id": "w", "timeout": 5}',
                {"checkpoint": {"offset": 1000}, "attempt": 2},
            ),
            before=active("seed.resume", more='"retry_backoff": "none"'),
            fresh=["seed.resume"],
        ),
        differs(
            "checkpoint-typescript",
            "`ctx.checkpoint()`, `ctx.cancelled` in TypeScript",
            "`context.checkpoint()`, `context.isCancelled`: see [TypeScript](../../sdk/typescript/README.md).",
        ),
    ),
)

CONCURRENCY = Section(
    "Concurrency",
    (
        differs(
            "concurrency-worker",
            "`new CorvoWorker({url, queues, concurrency})`",
            "`new Worker({ url, queues, concurrency })`: see [TypeScript](../../sdk/typescript/README.md).",
        ),
        works(
            "concurrency-queue",
            '`POST /api/v1/queues/payments.process/concurrency` with `{ "max": 1 }`',
            "One active job at a time, over all workers.",
            post("/queues/payments.process/concurrency", '{ "max": 1 }'),
            fetched("payments.process"),
            post("/fetch", '{"queues": ["payments.process"], "worker_id": "w", "timeout": 0}', status=204),
            before=[enqueued("payments.process"), enqueued("payments.process")],
            fresh=["payments.process"],
        ),
    ),
)

SECTIONS = (SCHEDULES, EXPIRY, CANCEL, SHUTDOWN, CONCURRENCY)
