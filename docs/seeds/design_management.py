"""corvo-design.md: the requests that manage queues, jobs and the rest."""

from docs.seeds.rows import (
    Http,
    Section,
    active,
    dead,
    delete,
    enqueued,
    fetched,
    get,
    has_state,
    post,
    works,
)

_QUEUE = [enqueued("emails.send")]

QUEUES = Section(
    "HTTP: queues",
    (
        works(
            "http-queues",
            "`GET /api/v1/queues`",
            "With counts and rates.",
            get("/queues", [..., {"name": "emails.send", "pending": int, "active": int, "dead": int}]),
            before=_QUEUE,
        ),
        works(
            "http-queues-configured",
            "a queue that is only configured is listed",
            "From its first setting on.",
            get("/queues", [..., {"name": "seed.configured"}]),
            before=[post("/queues/seed.configured/concurrency", '{"max": 2}')],
        ),
        works(
            "http-pause",
            "`POST /api/v1/queues/{name}/pause`",
            "See [control queues](../how-to/control-queues.md).",
            post("/queues/emails.send/pause"),
            post("/fetch", '{"queues": ["emails.send"], "worker_id": "w", "timeout": 0}', status=204),
            before=_QUEUE,
            fresh=["emails.send"],
        ),
        works(
            "http-resume",
            "`POST /api/v1/queues/{name}/resume`",
            "After a pause or a drain.",
            post("/queues/emails.send/resume"),
            fetched("emails.send"),
            before=[*_QUEUE, post("/queues/emails.send/pause")],
            fresh=["emails.send"],
        ),
        works(
            "http-clear",
            "`POST /api/v1/queues/{name}/clear`",
            "Deletes pending, scheduled and retrying jobs.",
            post("/queues/emails.send/clear"),
            get("/jobs/$JOB", status=404),
            before=_QUEUE,
        ),
        works(
            "http-drain",
            "`POST /api/v1/queues/{name}/drain`",
            "Stops the queue and says how many jobs are active; ask again until none is.",
            post("/queues/seed.drain/drain", "", {"active": 1}),
            before=active("seed.drain"),
            fresh=["seed.drain"],
        ),
        works(
            "http-concurrency",
            "`POST /api/v1/queues/{name}/concurrency`",
            '`{"max": 1}`.',
            post("/queues/emails.send/concurrency", '{"max": 1}'),
            get("/queues/emails.send", {"max_concurrency": 1}),
            before=_QUEUE,
            fresh=["emails.send"],
        ),
        works(
            "http-throttle",
            '`POST /api/v1/queues/{name}/throttle` with `{ "rate": 100, "period": "1m" }`',
            "Also with `window_ms`.",
            post("/queues/emails.send/throttle", '{ "rate": 100, "period": "1m" }'),
            get("/queues/emails.send", {"rate_limit": 100, "rate_window_ms": 60000}),
            before=_QUEUE,
            fresh=["emails.send"],
        ),
        works(
            "http-remove-throttle",
            "`DELETE /api/v1/queues/{name}/throttle`",
            "From then on without a rate.",
            delete("/queues/emails.send/throttle"),
            get("/queues/emails.send", {"rate_limit": None}),
            before=[*_QUEUE, post("/queues/emails.send/throttle", '{"rate": 9, "window_ms": 60000}')],
            fresh=["emails.send"],
        ),
        works(
            "http-delete-queue",
            "`DELETE /api/v1/queues/{name}` needs `?confirm=true`",
            "While jobs are active, `force=true` too.",
            delete("/queues/seed.deleted", status=400),
            delete("/queues/seed.deleted?confirm=true"),
            get("/queues/seed.deleted", status=404),
            before=[enqueued("seed.deleted")],
        ),
    ),
)

JOBS = Section(
    "HTTP: jobs",
    (
        works(
            "http-get-job",
            "`GET /api/v1/jobs/{id}`",
            "Asked of the shard, never old.",
            get("/jobs/$JOB", {"id": "$JOB", "state": "dead", "errors": [{"error": "SMTP timeout", "attempt": 1}]}),
            before=dead("seed.job"),
            fresh=["seed.job"],
        ),
        works(
            "http-retry",
            "`POST /api/v1/jobs/{id}/retry`",
            "With all attempts before it.",
            post("/jobs/$JOB/retry"),
            has_state("pending"),
            before=dead("seed.job"),
            fresh=["seed.job"],
        ),
        works(
            "http-cancel",
            "`POST /api/v1/jobs/{id}/cancel`",
            "A pending job is `cancelled`, an active one `cancelling`.",
            post("/jobs/$JOB/cancel", "", {"status": "cancelled"}),
            before=[enqueued("seed.job")],
        ),
        works(
            "http-move",
            "`POST /api/v1/jobs/{id}/move`",
            '`{"queue": "…"}`; the job keeps its id.',
            post("/jobs/$JOB/move", '{"queue": "emails.legacy"}'),
            get("/jobs/$JOB", {"queue": "emails.legacy"}),
            before=[enqueued("seed.job")],
        ),
        works(
            "http-delete-job",
            "`DELETE /api/v1/jobs/{id}`",
            "In any state.",
            delete("/jobs/$JOB"),
            get("/jobs/$JOB", status=404),
            before=[enqueued("seed.job")],
        ),
    ),
)

OTHERS = Section(
    "HTTP: other management",
    (
        works(
            "http-dead",
            "`GET /api/v1/dead`",
            "Also as `GET /jobs/dead`.",
            get("/dead", {"jobs": [..., {"id": "$JOB"}]}),
            before=dead("seed.dead"),
        ),
        works(
            "http-workers",
            "`GET /api/v1/workers`",
            "With all queues that a worker fetches from.",
            get("/workers", [..., {"id": "seed-lister", "hostname": str, "queues": ["seed.one", "seed.two"]}]),
            before=[
                enqueued("seed.one"),
                post("/fetch", '{"queues": ["seed.one", "seed.two"], "worker_id": "seed-lister"}'),
            ],
            fresh=["seed.one", "seed.two"],
        ),
        works("http-schedules", "`GET /api/v1/schedules`", "By name.", get("/schedules", [...])),
        works(
            "http-create-schedule",
            "`POST /api/v1/schedules`",
            "One of the same name and terms is answered again.",
            post("/schedules", '{"name": "s-1", "queue": "seed.cron", "cron": "0 9 * * *"}', {"name": "s-1"}, 201),
        ),
        works(
            "http-update-schedule",
            "`PUT /api/v1/schedules/{id}`",
            "By id or name; what is left out stays.",
            Http("PUT /api/v1/schedules/$ID", '{"cron": "0 8 * * *"}', 200, {"cron": "0 8 * * *"}),
            before=[
                Http(
                    "POST /api/v1/schedules",
                    '{"name": "s-2", "queue": "seed.cron", "cron": "0 9 * * *"}',
                    201,
                    None,
                    {"ID": "id"},
                )
            ],
        ),
        works(
            "http-delete-schedule",
            "`DELETE /api/v1/schedules/{id}`",
            "Its jobs stay.",
            delete("/schedules/$ID"),
            get("/schedules/$ID", status=404),
            before=[
                Http(
                    "POST /api/v1/schedules",
                    '{"name": "s-3", "queue": "seed.cron", "cron": "0 9 * * *"}',
                    201,
                    None,
                    {"ID": "id"},
                )
            ],
        ),
        works(
            "http-cluster-status",
            "`GET /api/v1/cluster/status`",
            "Every shard and all its replicas.",
            get("/cluster/status", {"status": "healthy", "groups": [dict, dict, dict]}),
        ),
        works(
            "http-metrics",
            "`GET /api/v1/metrics`",
            "Also at `/metrics`.",
            get("/metrics", "corvo_http_requests_total"),
        ),
        works(
            "http-events",
            "`GET /api/v1/events`",
            "Server-sent events; see [events](../how-to/follow-events.md).",
            Http("GET /api/v1/events", headers={"content-type": "text/event-stream"}, is_stream=True),
        ),
    ),
)

SECTIONS = (QUEUES, JOBS)
MORE_SECTIONS = (OTHERS,)
