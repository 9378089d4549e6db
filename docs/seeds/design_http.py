"""corvo-design.md: the HTTP protocol for producers and workers."""

from docs.seeds.rows import (
    Http,
    Section,
    active,
    differs,
    enqueued,
    fetched,
    get,
    post,
    works,
)

_FULL = """{
  "queue": "emails.send",
  "payload": { "to": "user@example.com", "template": "welcome" },
  "priority": "normal",
  "unique_key": "send-welcome-user@example.com",
  "unique_period": 3600,
  "max_retries": 5,
  "retry_backoff": "exponential",
  "retry_base_delay": "5s",
  "retry_max_delay": "10m",
  "scheduled_at": null,
  "expire_after": "1h",
  "tags": { "tenant": "acme-corp" }
}"""

_CHAIN = """{
  "queue": "ai.extract",
  "payload": { "document_url": "https://example.com/report.pdf" },
  "chain": {
    "steps": [
      { "queue": "ai.extract" },
      { "queue": "ai.summarize" },
      { "queue": "ai.review" }
    ],
    "on_failure": { "queue": "alerts.chain-failed", "payload": { "notify": "ops" } },
    "on_exit": { "queue": "cleanup.finalize" }
  }
}"""
_CHAIN_QUEUES = ("ai.extract", "ai.summarize", "ai.review", "alerts.chain-failed", "cleanup.finalize")
# A queue that is emptied ends its chains: what that makes must not meet the chain that fails on purpose.
_FAILING = _CHAIN.replace("ai.extract", "seed.failing").replace("alerts.chain-failed", "seed.chain-failed")
_IN_CHAIN = (Http("POST /api/v1/enqueue", _CHAIN, 201, None, {"JOB": "job_id"}), fetched("ai.extract"))

_BATCH = """{
  "jobs": [
    { "queue": "emails.send", "payload": { "to": "a@example.com" } },
    { "queue": "emails.send", "payload": { "to": "b@example.com" } },
    { "queue": "emails.send", "payload": { "to": "c@example.com" } }
  ],
  "batch": {
    "callback_queue": "emails.batch-complete",
    "callback_payload": { "campaign_id": "camp_123" }
  }
}"""

_FETCH = """{
  "queues": ["emails.send", "emails.bulk"],
  "worker_id": "worker-abc",
  "hostname": "pod-xyz-123",
  "timeout": 30
}"""


PRODUCERS = Section(
    "HTTP: producers",
    (
        works(
            "http-enqueue",
            "`POST /api/v1/enqueue` with all its fields → 201 `job_id`, `status`, `unique_existing`",
            "Ids begin with their shard: `s01_job_…`.",
            post("/enqueue", _FULL, {"job_id": str, "status": "pending", "unique_existing": False}, 201),
            fresh=["emails.send"],
        ),
        works(
            "enqueue-queue",
            "`queue`",
            "1 to 200 characters; see [limits](limits.md).",
            post("/enqueue", '{"queue": "seed.fields"}', status=201),
        ),
        works(
            "enqueue-payload",
            "`payload`",
            "Kept byte for byte.",
            post("/enqueue", '{"queue": "seed.fields", "payload": {"n": 1}}', status=201, JOB="job_id"),
            get("/jobs/$JOB", {"payload": {"n": 1}}),
        ),
        differs(
            "enqueue-priority",
            '`priority`: `"normal"`',
            "The same words at enqueue; a job shows 0, 1 or 2.",
            post("/enqueue", '{"queue": "seed.fields", "priority": "critical"}', status=201, JOB="job_id"),
            get("/jobs/$JOB", {"priority": 0}),
        ),
        works(
            "enqueue-unique",
            "`unique_key`, `unique_period`",
            "A second job is not made: its answer has the first one's id and `unique_existing`.",
            post("/enqueue", _FULL, {"job_id": "$JOB", "unique_existing": True}),
            before=[Http("POST /api/v1/enqueue", _FULL, 201, None, {"JOB": "job_id"})],
            fresh=["emails.send"],
        ),
        differs(
            "enqueue-duplicate-status",
            'a duplicate has `"status": "duplicate"`',
            "The status is `duplicate`, the code 200 instead of 201.",
            post("/enqueue", _FULL, {"status": "duplicate"}),
            before=[Http("POST /api/v1/enqueue", _FULL, 201)],
            fresh=["emails.send"],
        ),
        works(
            "enqueue-retries",
            "`max_retries`, `retry_backoff`, `retry_base_delay`, `retry_max_delay`",
            "Also as numbers: `retry_base_delay_ms`, `retry_max_delay_ms`.",
            post("/enqueue", _FULL, status=201, JOB="job_id"),
            get(
                "/jobs/$JOB",
                {
                    "max_retries": 5,
                    "retry_backoff": "exponential",
                    "retry_base_delay_ms": 5000,
                    "retry_max_delay_ms": 600000,
                },
            ),
            fresh=["emails.send"],
        ),
        works(
            "enqueue-scheduled-at",
            "`scheduled_at`",
            "RFC 3339 with an offset; `null` is as good as none.",
            post(
                "/enqueue",
                '{"queue": "seed.fields", "scheduled_at": "$TOMORROW"}',
                {"status": "scheduled"},
                201,
            ),
        ),
        works(
            "enqueue-expire-after",
            "`expire_after`",
            "Becomes `expire_at`.",
            post("/enqueue", '{"queue": "seed.fields", "expire_after": "1h"}', status=201, JOB="job_id"),
            get("/jobs/$JOB", {"expire_at": str}),
        ),
        works(
            "enqueue-tags",
            "`tags`",
            "An object of plain values.",
            post("/enqueue", '{"queue": "seed.fields", "tags": {"tenant": "acme-corp"}}', status=201, JOB="job_id"),
            get("/jobs/$JOB", {"tags": {"tenant": "acme-corp"}}),
        ),
        works(
            "enqueue-nulls",
            "`null` in an optional field means absent",
            "In every optional field of every body.",
            post(
                "/enqueue",
                '{"queue": "seed.fields", "depends_on": null, "tags": null, "unique_key": null, "max_retries": null, '
                '"retry_backoff": null, "chain": null, "batch_id": null}',
                status=201,
            ),
        ),
        works(
            "http-chain",
            "`POST /api/v1/enqueue` with `chain`: `steps`, `on_failure`, `on_exit`",
            "See [chains](../how-to/chains-and-dependencies.md).",
            post("/enqueue", _CHAIN, {"job_id": str, "status": "pending", "unique_existing": False}, 201, JOB="job_id"),
            get("/jobs/$JOB", {"chain_id": str, "chain_step": 0, "chain_config": {"steps": [..., ...]}}),
            fresh=_CHAIN_QUEUES,
        ),
        works(
            "chain-continue",
            'ack with `"step_status": "continue"` makes the next step, with the result in its payload',
            "Also when `step_status` is left out.",
            post("/ack/$JOB", '{"result": {"text": "long"}, "step_status": "continue"}'),
            post("/fetch", '{"queues": ["ai.summarize"], "worker_id": "w", "timeout": 5}', {"payload": dict}),
            before=_IN_CHAIN,
            fresh=_CHAIN_QUEUES,
        ),
        works(
            "chain-exit",
            'ack with `"step_status": "exit"` skips the rest and makes `on_exit`',
            "`exit_reason` is optional.",
            post("/ack/$JOB", '{"step_status": "exit"}'),
            fetched("cleanup.finalize"),
            before=_IN_CHAIN,
            fresh=_CHAIN_QUEUES,
        ),
        works(
            "chain-failure",
            "a dead step makes `on_failure`, with the error",
            "Its payload has the error under `chain`.",
            post("/fail/$JOB", '{"error": "no such page", "retry": false}'),
            post("/fetch", '{"queues": ["seed.chain-failed"], "worker_id": "w", "timeout": 5}', "no such page"),
            before=[Http("POST /api/v1/enqueue", _FAILING, 201), fetched("seed.failing")],
            fresh=["seed.failing", "seed.chain-failed"],
        ),
        works(
            "http-enqueue-batch",
            "`POST /api/v1/enqueue/batch` with `jobs` and `batch` → 201 `job_ids`, `batch_id`",
            "See [batches](../how-to/batches.md).",
            post("/enqueue/batch", _BATCH, {"job_ids": [str, str, str], "batch_id": str}, 201),
            fresh=["emails.send"],
        ),
    ),
)

WORKERS = Section(
    "HTTP: workers",
    (
        works(
            "http-fetch",
            "`POST /api/v1/fetch` with `queues`, `worker_id`, `hostname`, `timeout` → 200",
            "Waits up to `timeout` seconds, 60 at most.",
            post(
                "/fetch",
                _FETCH,
                {
                    "job_id": "$JOB",
                    "queue": "emails.send",
                    "payload": {"to": "user@example.com"},
                    "attempt": 1,
                    "max_retries": 5,
                    "lease_duration": 60,
                    "tags": {"tenant": "acme-corp"},
                },
            ),
            before=[
                enqueued(
                    "emails.send",
                    '{"to": "user@example.com"}',
                    '"max_retries": 5, "tags": {"tenant": "acme-corp"}',
                )
            ],
            fresh=["emails.send", "emails.bulk"],
        ),
        differs(
            "http-fetch-checkpoint",
            'a fetched job has `"checkpoint": null`',
            "A field that has no value is left out; a job with a checkpoint has it.",
            post("/fetch", '{"queues": ["seed.checkpoint"], "worker_id": "w"}', {"checkpoint": {"offset": 1}}),
            before=[enqueued("seed.checkpoint", more='"checkpoint": {"offset": 1}')],
            fresh=["seed.checkpoint"],
        ),
        works(
            "http-fetch-empty",
            "`POST /api/v1/fetch` → 204 when nothing came in time",
            "Then ask again.",
            post("/fetch", '{"queues": ["seed.empty"], "worker_id": "worker-abc", "timeout": 0}', status=204),
            fresh=["seed.empty"],
        ),
        works(
            "http-ack",
            "`POST /api/v1/ack/{job_id}` with `result`, `step_status` → 200",
            "Give `lease_token` too: a worker whose lease is over then changes nothing.",
            post("/ack/$JOB", '{"result": {"sent": true, "message_id": "msg_123"}, "step_status": "continue"}'),
            get("/jobs/$JOB", {"state": "completed", "result": {"sent": True, "message_id": "msg_123"}}),
            before=active("seed.ack"),
            fresh=["seed.ack"],
        ),
        works(
            "http-fail",
            "`POST /api/v1/fail/{job_id}` with `error`, `backtrace` → `status`, `next_attempt_at`, "
            "`attempts_remaining`",
            "See [retries](../how-to/retries.md).",
            post(
                "/fail/$JOB",
                '{"error": "SMTP connection timeout", "backtrace": "at send_email:42\\nat worker:18"}',
                {"status": "retrying", "next_attempt_at": str, "attempts_remaining": 4},
            ),
            before=active("seed.fail", more='"max_retries": 5'),
            fresh=["seed.fail"],
        ),
        works(
            "http-heartbeat",
            "`POST /api/v1/heartbeat` with `jobs`: nothing, `progress`, `checkpoint` → `ok`",
            "One request for all jobs of a worker.",
            post(
                "/heartbeat",
                '{"jobs": {"$JOB": {"progress": {"current": 450, "total": 1000, "message": "Sending batch"}, '
                '"checkpoint": {"offset": 47000}}}}',
                {"jobs": {"$JOB": {"status": "ok"}}},
            ),
            post("/heartbeat", '{"jobs": {"$JOB": {}}}', {"jobs": {"$JOB": {"status": "ok"}}}),
            get("/jobs/$JOB", {"progress": {"current": 450}, "checkpoint": {"offset": 47000}}),
            before=active("seed.heartbeat"),
            fresh=["seed.heartbeat"],
        ),
        works(
            "http-heartbeat-cancel",
            '`POST /api/v1/heartbeat` → `"status": "cancel"`',
            "Or `lease_lost`: stop in both cases.",
            post("/heartbeat", '{"jobs": {"$JOB": {}}}', {"jobs": {"$JOB": {"status": "cancel"}}}),
            before=[*active("seed.heartbeat"), post("/jobs/$JOB/cancel")],
            fresh=["seed.heartbeat"],
        ),
    ),
)

SECTIONS = (PRODUCERS, WORKERS)
