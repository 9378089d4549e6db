"""corvo-architecture.md: the life of a job, the scheduler, chains, batches, unique keys."""

from docs.seeds.rows import (
    Section,
    Shell,
    active,
    completed,
    dead,
    differs,
    enqueued,
    fetched,
    get,
    has_state,
    not_yet,
    post,
    works,
)

_WORKER = '{"queues": ["seed.life"], "worker_id": "w", "timeout": 5}'

LIFE = Section(
    "Job state machine",
    (
        works(
            "arch-life-pending",
            "enqueue → `pending`",
            "See [states](states.md).",
            has_state("pending"),
            before=[enqueued("seed.life")],
        ),
        works(
            "arch-life-scheduled",
            "`scheduled_at` in the future → `scheduled` → `pending`",
            "When it is due.",
            fetched("seed.life"),
            before=[enqueued("seed.life", more='"delay_ms": 100')],
            fresh=["seed.life"],
        ),
        works(
            "arch-life-active",
            "fetch → `active`",
            "Under a lease.",
            has_state("active"),
            before=active("seed.life"),
            fresh=["seed.life"],
        ),
        works(
            "arch-life-completed",
            "ack → `completed`",
            "With a result.",
            has_state("completed"),
            before=completed("seed.life"),
            fresh=["seed.life"],
        ),
        not_yet(
            "arch-life-continue",
            "ack (continue) → `pending`",
            "AI",
            "The loop of an agent.",
            post("/ack/$JOB", '{"agent_status": "continue"}'),
            before=active("seed.life"),
            fresh=["seed.life"],
        ),
        not_yet(
            "arch-life-ack-hold",
            "ack (hold) → `held`",
            "AI",
            "A person can hold a job: `POST /jobs/{job_id}/hold`.",
            post("/ack/$JOB", '{"agent_status": "hold"}'),
            before=active("seed.life"),
            fresh=["seed.life"],
        ),
        works(
            "arch-life-retrying",
            "fail with attempts left → `retrying`",
            "Then `pending` after its backoff.",
            post("/fail/$JOB", '{"error": "x"}', {"status": "retrying"}),
            post("/fetch", _WORKER, {"job_id": "$JOB", "attempt": 2}),
            before=active("seed.life", more='"retry_base_delay": "100ms"'),
            fresh=["seed.life"],
        ),
        works(
            "arch-life-dead",
            "fail with none left → `dead`",
            "Kept for seven days.",
            has_state("dead"),
            before=dead("seed.life"),
            fresh=["seed.life"],
        ),
        differs(
            "arch-life-reclaim",
            "lease over → `pending`",
            "While attempts are left; else `dead`.",
            post("/fetch", _WORKER, {"job_id": "$JOB", "attempt": 2}),
            before=[
                enqueued("seed.life"),
                post("/fetch", '{"queues": ["seed.life"], "worker_id": "w", "lease_duration": 1}'),
            ],
            fresh=["seed.life"],
        ),
        works(
            "arch-life-cancel",
            "cancel → `cancelled`",
            "From every state that has not ended.",
            post("/jobs/$JOB/cancel"),
            has_state("cancelled"),
            before=[enqueued("seed.life")],
        ),
        works(
            "arch-life-hold",
            "hold → `held` → approve → `pending`, reject → `dead`",
            "See [act on jobs](../how-to/act-on-jobs.md).",
            post("/jobs/$JOB/hold"),
            post("/jobs/$JOB/approve"),
            has_state("pending"),
            post("/jobs/$JOB/hold"),
            post("/jobs/$JOB/reject"),
            has_state("dead"),
            before=[enqueued("seed.life")],
        ),
        works(
            "arch-backoffs", "backoffs `none`, `fixed`, `linear`, `exponential`", "See [retries](../how-to/retries.md)."
        ),
        works(
            "arch-backoff-default",
            "exponential, 5 s, 10 min by default",
            "The same.",
            get(
                "/jobs/$JOB",
                {"retry_backoff": "exponential", "retry_base_delay_ms": 5000, "retry_max_delay_ms": 600000},
            ),
            before=[enqueued("seed.life")],
        ),
    ),
)

SCHEDULER = Section(
    "Scheduler",
    (
        differs("arch-promote", "promote every second", "Each when it is due."),
        differs("arch-reclaim", "reclaim every second", "At the end of the lease."),
        differs("arch-clean-unique", "clean unique locks every 30 s", "A lock ends at its own time."),
        differs("arch-clean-rates", "clean rate windows every 30 s", "With each claim."),
        differs("arch-expire", "expire jobs every 10 s", "Each at its own time."),
        differs(
            "arch-purge",
            "purge ended jobs every hour, older than 7 days",
            "Each seven days after its end; a queue may have another retention.",
        ),
        works(
            "arch-retention-flag",
            "`--retention`",
            "Of the whole server; a queue may have its own: `POST /queues/{name}/retention`.",
            Shell("corvo config --retention 168h"),
        ),
        not_yet(
            "arch-retention-interval",
            "`--retention-interval`",
            "settings",
            "There is no sweep: each job is deleted when its time is over.",
            Shell("corvo config --retention-interval 1h"),
        ),
    ),
)

RULES = Section(
    "Concurrency, chains, batches, unique keys",
    (
        works(
            "arch-active-count",
            "active jobs are counted, for `max_concurrency`",
            "In the queue's record: nothing to rebuild.",
        ),
        works(
            "arch-fetch-checks",
            "fetch: paused? concurrency? rate? overload?",
            "The reason can be asked: [`corvo why`](../how-to/why-not-running.md).",
            get("/jobs/$JOB/why", {"reason": str, "message": str}),
            before=[enqueued("seed.why"), post("/queues/seed.why/pause")],
            fresh=["seed.why"],
        ),
        works(
            "arch-chains",
            "chains: `Steps`, `OnFailure`, `OnExit`",
            "See [chains](../how-to/chains-and-dependencies.md).",
        ),
        differs(
            "arch-dependencies",
            "a job is fetched when all of `depends_on` are completed",
            "It waits as `scheduled`, and is pending when they are: [dependencies](../decisions/0009-dependencies.md).",
            post("/ack/$JOB"),
            post("/fetch", '{"queues": ["seed.after"], "worker_id": "w", "timeout": 5}', {"job_id": "$LATER"}),
            before=[
                *active("seed.first"),
                post("/enqueue", '{"queue": "seed.after", "depends_on": ["$JOB"]}', status=201, LATER="job_id"),
            ],
            fresh=["seed.first", "seed.after"],
        ),
        works(
            "arch-batches",
            "batches: total, pending, succeeded, failed, callback",
            "See [batches](../how-to/batches.md).",
        ),
        works(
            "arch-unique",
            "unique keys: checked with the enqueue, freed at completion",
            "See [unique jobs](../how-to/unique-jobs.md).",
        ),
    ),
)

SECTIONS = (LIFE, SCHEDULER, RULES)
