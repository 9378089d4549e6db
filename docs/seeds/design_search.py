"""corvo-design.md: search and bulk operations."""

from typing import Any

from docs.seeds.rows import (
    ABSENT,
    Http,
    Row,
    Section,
    Step,
    active,
    completed,
    dead,
    differs,
    enqueued,
    get,
    has_state,
    post,
    works,
)

_QUEUE = "seed.search"
_FOUND: Any = {"jobs": [{"id": "$JOB"}]}
_NOTHING: Any = {"jobs": []}


def _filter(name: str, kind: str, yes: str, no: str, *before: Step, where: str = "") -> Row:
    """One filter, once with a value that fits and once with one that does not."""
    return works(
        f"filter-{name.replace('_', '-')}",
        f"`{name}` ({kind})",
        where or "As in the seed.",
        post("/jobs/search", f'{{"queue": "{_QUEUE}", "{name}": {yes}}}', _FOUND),
        post("/jobs/search", f'{{"queue": "{_QUEUE}", "{name}": {no}}}', _NOTHING),
        before=before or [enqueued(_QUEUE)],
        fresh=[_QUEUE],
    )


def _jq(number: int, expression: str, payload: str) -> Row:
    quoted = expression.replace('"', '\\"')
    return works(
        f"jq-{number}",
        f"`{expression}`",
        "See [`payload_jq`](payload-jq.md).",
        post("/jobs/search", f'{{"queue": "{_QUEUE}", "payload_jq": "{quoted}"}}', _FOUND),
        before=[enqueued(_QUEUE, "{}", name="OTHER"), enqueued(_QUEUE, payload)],
        fresh=[_QUEUE],
    )


SEARCH = Section(
    "HTTP: search",
    (
        works(
            "http-search",
            "`POST /api/v1/jobs/search` with all its fields",
            "The seed's request; only `created_before` and `worker_id` are adapted.",
            post(
                "/jobs/search",
                """{
  "queue": "emails.send",
  "state": ["pending", "dead"],
  "priority": "normal",
  "tags": { "tenant": "acme-corp" },
  "payload_contains": "user@example.com",
  "payload_jq": ".template == \\"welcome\\"",
  "created_after": "2026-02-10T00:00:00Z",
  "created_before": "2126-02-11T23:59:59Z",
  "worker_id": "seed-worker",
  "has_errors": true,
  "error_contains": "SMTP",
  "sort": "created_at",
  "order": "desc",
  "cursor": null,
  "limit": 50
}""",
                {
                    "jobs": [
                        {
                            "id": "$JOB",
                            "queue": "emails.send",
                            "state": "dead",
                            "payload": {"to": "user@example.com", "template": "welcome"},
                            "created_at": str,
                            "attempt": 1,
                            "last_error": "SMTP timeout",
                            "tags": {"tenant": "acme-corp"},
                        }
                    ],
                    "total": 1,
                    "cursor": None,
                    "has_more": False,
                },
            ),
            before=dead(
                "emails.send",
                '{"to": "user@example.com", "template": "welcome"}',
                more='"tags": {"tenant": "acme-corp"}',
            ),
            fresh=["emails.send"],
        ),
        works(
            "search-pages",
            "`cursor`, `has_more`, `total`",
            "`total_is_exact` says whether `total` is.",
            post(
                "/jobs/search", '{"queue": "seed.search", "limit": 1}', {"has_more": True, "total": 2}, CURSOR="cursor"
            ),
            post("/jobs/search", '{"queue": "seed.search", "limit": 1, "cursor": "$CURSOR"}', {"has_more": False}),
            before=[enqueued(_QUEUE), enqueued(_QUEUE)],
            fresh=[_QUEUE],
        ),
        works(
            "search-duration",
            "the response tells its time: `duration_ms`",
            "And `lag_ms`, how old it may be.",
            post("/jobs/search", "{}", {"duration_ms": float}),
        ),
        works(
            "filter-queue",
            "`queue` (string)",
            "Exact.",
            post("/jobs/search", '{"queue": "seed.search"}', _FOUND),
            post("/jobs/search", '{"queue": "seed.sear"}', _NOTHING),
            before=[enqueued(_QUEUE)],
            fresh=[_QUEUE],
        ),
        _filter("state", "string[]", '["pending", "dead"]', '["dead"]', where="Any of these; also `held`."),
        _filter("priority", "string", '"normal"', '"high"'),
        _filter(
            "tags",
            "object",
            '{"tenant": "acme"}',
            '{"tenant": "acme", "x": "y"}',
            enqueued(_QUEUE, more='"tags": {"tenant": "acme"}'),
            where="All must match, type included.",
        ),
        _filter("payload_contains", "string", '"needle"', '"thread"', enqueued(_QUEUE, '{"a": "needle"}')),
        _filter("payload_jq", "string", '".a == 1"', '".a == 2"', enqueued(_QUEUE, '{"a": 1}')),
        _filter("created_after", "datetime", '"2026-02-10T00:00:00Z"', '"2126-02-10T00:00:00Z"'),
        _filter("created_before", "datetime", '"2126-02-10T00:00:00Z"', '"2026-02-10T00:00:00Z"'),
        _filter("worker_id", "string", '"seed-worker"', '"nobody"', *active(_QUEUE)),
        _filter("has_errors", "bool", "true", "false", *dead(_QUEUE)),
        _filter("error_contains", "string", '"SMTP"', '"disk"', *dead(_QUEUE)),
        works(
            "filter-batch-id",
            "`batch_id` (string)",
            "As in the seed.",
            post("/jobs/search", '{"batch_id": "$BATCH"}', {"jobs": [{"batch_id": "$BATCH"}]}),
            before=[
                Http(
                    "POST /api/v1/enqueue/batch",
                    '{"jobs": [{"queue": "seed.search"}], "batch": {"callback_queue": "seed.done"}}',
                    201,
                    None,
                    {"BATCH": "batch_id"},
                )
            ],
        ),
        _filter("unique_key", "string", '"k-1"', '"k-2"', enqueued(_QUEUE, more='"unique_key": "k-1"')),
        _filter(
            "expire_before",
            "datetime",
            '"2126-02-10T00:00:00Z"',
            '"2026-02-10T00:00:00Z"',
            enqueued(_QUEUE, more='"expire_after": "1h"'),
        ),
        _filter(
            "expire_after",
            "datetime",
            '"2026-02-10T00:00:00Z"',
            '"2126-02-10T00:00:00Z"',
            enqueued(_QUEUE, more='"expire_after": "1h"'),
        ),
        _filter(
            "scheduled_before",
            "datetime",
            '"2126-02-10T00:00:00Z"',
            '"2026-02-10T00:00:00Z"',
            enqueued(_QUEUE, more='"delay": "1h"'),
        ),
        _filter(
            "scheduled_after",
            "datetime",
            '"2026-02-10T00:00:00Z"',
            '"2126-02-10T00:00:00Z"',
            enqueued(_QUEUE, more='"delay": "1h"'),
        ),
        _filter("started_after", "datetime", '"2026-02-10T00:00:00Z"', '"2126-02-10T00:00:00Z"', *active(_QUEUE)),
        _filter("started_before", "datetime", '"2126-02-10T00:00:00Z"', '"2026-02-10T00:00:00Z"', *active(_QUEUE)),
        _filter("completed_after", "datetime", '"2026-02-10T00:00:00Z"', '"2126-02-10T00:00:00Z"', *completed(_QUEUE)),
        _filter("completed_before", "datetime", '"2126-02-10T00:00:00Z"', '"2026-02-10T00:00:00Z"', *completed(_QUEUE)),
        _filter("attempt_min", "int", "1", "2", *active(_QUEUE)),
        _filter("attempt_max", "int", "1", "0", *active(_QUEUE)),
        _filter("job_id_prefix", "string", '"$JOB"', '"s99_"'),
        works(
            "search-dates",
            "a time may be a date: `2026-02-10`",
            "A date means midnight in UTC.",
            post("/jobs/search", '{"queue": "seed.search", "created_after": "2026-02-10"}', _FOUND),
            before=[enqueued(_QUEUE)],
            fresh=[_QUEUE],
        ),
        works(
            "search-scheduled-waiting",
            "`scheduled_at` is NULL after promotion, so that `scheduled_*` finds jobs that wait",
            "Only a waiting job has a `scheduled_at`.",
            get("/jobs/$JOB", {"state": "active", "scheduled_at": ABSENT}),
            before=[enqueued(_QUEUE, more='"delay_ms": 1'), *active(_QUEUE)[1:]],
            fresh=[_QUEUE],
        ),
        _jq(1, '.email == "user@example.com"', '{"email": "user@example.com"}'),
        _jq(2, ".amount > 100", '{"amount": 150}'),
        _jq(3, '.tags | contains("vip")', '{"tags": ["vip"]}'),
        _jq(4, '.metadata.region == "us-east"', '{"metadata": {"region": "us-east"}}'),
        _jq(5, '.template | startswith("welcome")', '{"template": "welcome_email"}'),
        _jq(6, ".items | length > 5", '{"items": [1, 2, 3, 4, 5, 6]}'),
    ),
)


def _bulk(action: str, states: str, more: str, check: Http, *before: Step) -> Row:
    return works(
        f"bulk-{action.replace('_', '-')}",
        f"bulk action `{action}` of {states}",
        "See [many jobs](../how-to/bulk.md).",
        post("/jobs/bulk", f'{{"filter": {{"queue": "seed.bulk"}}, "action": "{action}"{more}}}', {"affected": 1}),
        check,
        before=before,
        fresh=["seed.bulk", "seed.bulk-target"],
    )


BULK = Section(
    "HTTP: bulk operations",
    (
        works(
            "http-bulk-ids",
            "`POST /api/v1/jobs/bulk` with `job_ids` and `action`",
            "Up to 10,000 ids.",
            post("/jobs/bulk", '{"job_ids": ["$JOB"], "action": "retry"}', {"affected": 1}),
            before=dead("seed.bulk"),
            fresh=["seed.bulk"],
        ),
        works(
            "http-bulk-filter",
            "`POST /api/v1/jobs/bulk` with `filter` and `action` → `affected`, `errors`, `duration_ms`",
            "The seed's request; its dead jobs are pending again.",
            post(
                "/jobs/bulk",
                """{
  "filter": {
    "queue": "emails.send",
    "state": ["dead"],
    "error_contains": "SMTP timeout",
    "created_after": "2026-02-11T00:00:00Z"
  },
  "action": "retry"
}""",
                {"affected": 1, "errors": 0, "duration_ms": float},
            ),
            has_state("pending"),
            before=dead("emails.send"),
            fresh=["emails.send"],
        ),
        _bulk("retry", "dead, cancelled, completed", "", has_state("pending"), *completed("seed.bulk")),
        _bulk("delete", "any state", "", get("/jobs/$JOB", status=404), *dead("seed.bulk")),
        _bulk("cancel", "pending, active, scheduled, retrying", "", has_state("cancelled"), enqueued("seed.bulk")),
        _bulk(
            "move",
            "pending, dead, scheduled, completed",
            ', "move_to_queue": "seed.bulk-target"',
            get("/jobs/$JOB", {"queue": "seed.bulk-target"}),
            *dead("seed.bulk"),
        ),
        _bulk("requeue", "dead", "", get("/jobs/$JOB", {"state": "pending", "attempt": 1}), *dead("seed.bulk")),
        _bulk(
            "change_priority",
            "pending, scheduled",
            ', "priority": "critical"',
            get("/jobs/$JOB", {"priority": 0}),
            enqueued("seed.bulk"),
        ),
        works(
            "http-bulk-move",
            "bulk `move` with `payload_jq` and `move_to_queue`",
            "Jobs keep their ids.",
            post(
                "/jobs/bulk",
                """{
  "filter": {
    "queue": "emails.send",
    "state": ["dead"],
    "payload_jq": ".template == \\"legacy\\""
  },
  "action": "move",
  "move_to_queue": "emails.legacy"
}""",
                {"affected": 1, "errors": 0},
            ),
            get("/jobs/$JOB", {"queue": "emails.legacy", "state": "dead"}),
            before=dead("emails.send", '{"template": "legacy"}'),
            fresh=["emails.send"],
        ),
        works(
            "http-bulk-priority",
            "bulk `change_priority` with `tags`",
            "Waiting jobs are moved to their new position.",
            post(
                "/jobs/bulk",
                """{
  "filter": {
    "queue": "emails.send",
    "state": ["pending"],
    "tags": { "tenant": "acme-corp" }
  },
  "action": "change_priority",
  "priority": "critical"
}""",
                {"affected": 1},
            ),
            get("/jobs/$JOB", {"priority": 0}),
            before=[enqueued("emails.send", more='"tags": {"tenant": "acme-corp"}')],
            fresh=["emails.send"],
        ),
        works(
            "http-bulk-async",
            "over 10,000 jobs: `bulk_operation_id`, `status: processing`, `estimated_total`, `progress_url`",
            "`GET /bulk/{id}` tells `queued` from `running`.",
            post(
                "/jobs/bulk",
                '{"filter": {"queue": "seed.bulk"}, "action": "delete", "async": true}',
                {
                    "bulk_operation_id": str,
                    "status": "processing",
                    "estimated_total": 1,
                    "progress_url": str,
                },
                202,
            ),
            before=[enqueued("seed.bulk")],
            fresh=["seed.bulk"],
        ),
        works(
            "http-bulk-progress",
            "progress by SSE at `/api/v1/bulk/{id}/progress`",
            "Until the operation has ended.",
            Http("GET /api/v1/bulk/$BULK/progress", headers={"content-type": "text/event-stream"}, is_stream=True),
            before=[
                enqueued("seed.bulk"),
                Http(
                    "POST /api/v1/jobs/bulk",
                    '{"filter": {"queue": "seed.bulk"}, "action": "delete", "async": true}',
                    202,
                    None,
                    {"BULK": "bulk_operation_id"},
                ),
            ],
            fresh=["seed.bulk"],
        ),
    ),
)

PLANS = Section(
    "Search in SQL",
    (
        differs(
            "search-sql",
            "each filter becomes a `WHERE` clause",
            "Also here, but substrings and words are found by indexes of [their own]"
            "(../explanation/read-db.md#how-texts-are-found).",
        ),
        differs(
            "search-offset",
            "`LIMIT 50 OFFSET 0`; the cursor is an offset",
            "The cursor is a place in the order, so that no page shifts when jobs come.",
        ),
        differs(
            "search-performance",
            "under 5 ms by index, 50 to 100 ms by payload, for 100,000 jobs",
            "Measured in [benchmarks](benchmarks.md).",
        ),
    ),
)

SECTIONS = (SEARCH, BULK)
MORE_SECTIONS = (PLANS,)
