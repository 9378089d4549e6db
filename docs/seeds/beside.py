"""Not in the seeds, but part of the same work: what published clients of the original use."""

from docs.seeds.rows import Http, Section, Shell, dead, enqueued, post, works

HTTP = Section(
    "Requests",
    (
        works(
            "beside-head",
            "`HEAD` where `GET` is",
            "Everywhere.",
            Http("HEAD /api/v1/queues"),
            Http("HEAD /healthz"),
        ),
        works(
            "beside-options",
            "`OPTIONS` and CORS, origins by setting",
            "`--cors-origins`; none by default.",
            Http(
                "OPTIONS /api/v1/queues",
                headers={"access-control-allow-methods": "POST"},
                sends={"origin": "https://example.org", "access-control-request-method": "POST"},
            ),
        ),
        works(
            "beside-server-timing",
            "`Server-Timing: proc;dur=`",
            "In every answer.",
            Http("GET /api/v1/queues", headers={"server-timing": "proc;dur="}),
        ),
        works(
            "beside-join-addr",
            "`POST /cluster/join` with `addr`",
            "Or `address`.",
            post("/cluster/join", '{"node_id": "node-9", "addr": "127.0.0.1:1"}', {"code": "MEMBERSHIP_REFUSED"}, 409),
        ),
        works(
            "beside-date-only",
            "`scheduled_at` as a date: `2029-02-10`",
            "Midnight in UTC.",
            post("/enqueue", '{"queue": "seed.dates", "scheduled_at": "$DATE"}', {"status": "scheduled"}, 201),
        ),
        works(
            "beside-expire-far",
            "`expire_after` of a hundred years",
            "Up to the year 2199.",
            post("/enqueue", '{"queue": "seed.dates", "expire_after": "876000h"}', status=201),
        ),
        works(
            "beside-null-search",
            "`null` in a filter means absent",
            "In every optional field.",
            post(
                "/jobs/search",
                '{"queue": null, "state": null, "priority": null, "tags": null, "payload_jq": null, '
                '"has_errors": null, "created_after": null, "sort": null, "order": null, "limit": null}',
            ),
        ),
        works(
            "beside-scheduled-filter",
            "`scheduled_after` finds jobs that wait only",
            "Only a waiting job has a `scheduled_at`.",
            post(
                "/jobs/search",
                '{"queue": "seed.promoted", "scheduled_after": "2026-02-10T00:00:00Z"}',
                {"jobs": []},
            ),
            before=[
                enqueued("seed.promoted", more='"delay_ms": 1'),
                post("/fetch", '{"queues": ["seed.promoted"], "worker_id": "w", "timeout": 5}'),
            ],
            fresh=["seed.promoted"],
        ),
    ),
)

COMMANDS = Section(
    "Commands",
    (
        works(
            "beside-corvo-url",
            "`CORVO_URL`",
            "Beside `CORVO_SERVER`, which wins.",
            Shell("unset CORVO_SERVER; CORVO_URL=$URL corvo queues", ("QUEUE",)),
        ),
        works(
            "beside-api-key",
            "`--api-key`, `CORVO_API_KEY`",
            "Sent as `X-API-Key`, also by `corvo bench`. The server does not ask for it yet.",
            Shell("corvo queues --api-key sk_1"),
        ),
        works(
            "beside-output-json",
            "`--output-json`",
            "The same as `--output json`.",
            Shell("corvo queues --output-json | python -m json.tool"),
        ),
        works(
            "beside-search-array",
            "`corvo search --output json` is a list of jobs",
            "`--page` prints an object with total and cursor.",
            Shell("corvo search --queue seed.array --state dead --output json", ("$JOB",)),
            Shell(
                "corvo search --queue seed.array --state dead --output json "
                "| python -c 'import json, sys; sys.exit(type(json.load(sys.stdin)) is not list)'"
            ),
            before=dead("seed.array"),
            fresh=["seed.array"],
        ),
        works(
            "beside-tags-json",
            "`corvo enqueue --tags JSON`",
            "Beside `--tag KEY=VALUE`.",
            Shell("""corvo enqueue seed.tags '{}' --tags '{"tenant": "acme"}'"""),
        ),
        works(
            "beside-scheduled-date",
            "`corvo enqueue --scheduled-at 2029-02-10`",
            "Its midnight in UTC.",
            Shell("corvo enqueue seed.dates '{}' --scheduled-at $DATE", ("scheduled",)),
        ),
        works(
            "beside-seed-demo",
            "`corvo seed demo`",
            "Jobs in all states in queues `demo.…`.",
            Shell("corvo seed demo --count 8"),
        ),
        works(
            "beside-python-client",
            "Python client: `enqueue_batch`, `ack_batch`, `fail_batch`",
            "`corvo_client.Client` has a method for each endpoint (`sdk/python`).",
        ),
    ),
)

SECTIONS = (HTTP, COMMANDS)
