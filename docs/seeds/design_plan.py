"""corvo-design.md: the boxes of its plan, phase by phase. What a section above has already shown is only named."""

from docs.seeds.rows import Http, Row, Section, Shell, differs, get, not_yet, post, works


def _done(phase: int, number: int, seed: str, where: str) -> Row:
    return works(f"phase-{phase}-{number}", seed, where)


CORE = Section(
    "Phase 1: core",
    (
        differs("phase-1-scaffold", "Go scaffold, SQLite layer, migrations", "Python; LevelDB below, SQLite beside."),
        _done(1, 1, "models, id generation", "See [states](states.md)."),
        _done(1, 2, "enqueue, fetch, ack, fail, heartbeat, backoff", "See above."),
        _done(1, 3, "scheduler: promote, reclaim, clean locks", "See above."),
        _done(1, 4, "queue management: pause, resume, clear, drain, delete, concurrency, throttle", "See above."),
        _done(1, 5, "job management: get, retry, cancel, move, delete", "See above."),
        _done(1, 6, "search with all filters and a cursor", "See above."),
        _done(1, 7, "bulk: retry, delete, cancel, move, requeue, change_priority", "See above."),
        _done(1, 8, "HTTP server with all routes", "See [HTTP API](http-api.md)."),
        _done(1, 9, "graceful shutdown (SIGTERM, SIGINT)", "`--shutdown-timeout`."),
        _done(1, 10, "CLI", "See [commands](cli.md)."),
        works("phase-1-go-client", "Go client library", "[`sdk/go`](../../sdk/go/README.md)."),
        not_yet(
            "phase-1-compose", "Docker image and docker-compose", "packaging", "The image is there, no Compose file."
        ),
        _done(1, 11, "integration tests", "Whole servers and clusters are tested, killed and partitioned."),
    ),
)

CLUSTER = Section(
    "Phase 2: replication and performance",
    (
        _done(2, 1, "keys, their order tested", "See [keys](keys.md)."),
        _done(2, 2, "the machine, an operation each", "One file an operation."),
        _done(2, 3, "mirror in SQLite", "See [read.db](../explanation/read-db.md)."),
        differs("phase-2-snapshot", "snapshot and restore", "See [Raft](../explanation/raft.md)."),
        _done(2, 4, "event log", "100,000 events a shard; see [events](../how-to/follow-events.md)."),
        _done(2, 5, "bootstrap, members", "`corvo cluster add`, `remove`, `transfer`."),
        differs("phase-2-stores", "`--raft-store`: three backends", "One: LevelDB."),
        differs("phase-2-pipeline", "group commit, sub-batches", "See above."),
        _done(2, 6, "backpressure with retry hint", "429 `OVERLOADED`."),
        _done(2, 7, "latency histograms", "In [metrics](metrics.md)."),
        differs(
            "phase-2-rpc",
            "Connect RPC over HTTP/2 with protobuf: Enqueue, Fetch, FetchBatch, Ack, AckBatch, Fail, Heartbeat",
            "HTTP/JSON for each, HTTP/2 with TLS.",
            post(
                "/fetch/batch", '{"queues": ["seed.rpc"], "worker_id": "w", "count": 2, "timeout": 5}', {"jobs": [dict]}
            ),
            before=[post("/enqueue", '{"queue": "seed.rpc"}', status=201)],
            fresh=["seed.rpc"],
        ),
        differs(
            "phase-2-stream",
            "StreamLifecycle",
            "`GET /api/v1/stream`, a WebSocket: [stream](../how-to/use-the-stream.md).",
        ),
        _done(2, 8, "FetchBatch, AckBatch", "`POST /fetch/batch`, `/ack/batch`, `/fail/batch`."),
        works(
            "phase-2-bench",
            "`corvo bench`",
            "See [benchmark](../how-to/benchmark.md).",
            Shell("corvo bench --jobs 200 --seconds 2 --connections 1", ("jobs",)),
        ),
        differs("phase-2-h2", "HTTP/2 stream tuning", "100 requests at a time on a connection."),
        differs("phase-2-durable", "`--durable`", "Durable by default."),
        _done(2, 9, "leader proxy", "Calls are passed on between nodes, not HTTP requests."),
        _done(2, 10, "failover and rejoin", "Tried by [chaos](../how-to/run-chaos.md)."),
        _done(2, 11, "log compaction", "A node keeps entries only for followers that need them."),
        works(
            "phase-2-events-route",
            "event log endpoint",
            "`GET /cluster/events?after_seq=0` from the beginning.",
            get("/cluster/events?after_seq=0", {"events": [...]}),
        ),
    ),
)

HARDENING = Section(
    "Phase 3: production hardening",
    (
        _done(3, 1, "`payload_jq`", "See [`payload_jq`](payload-jq.md)."),
        _done(3, 2, "bulk over 10,000 jobs in the background, with progress", "Replicated: it survives a crash."),
        works(
            "phase-3-ui-live", "live UI by SSE", "[The console](../how-to/use-the-console.md): one connection a tab."
        ),
        _done(3, 3, "metrics at `GET /api/v1/metrics`", "Also at `/metrics`."),
        works("phase-3-ui-1", "UI: dashboard, queue, job, bulk", "[The console](../how-to/use-the-console.md)."),
        not_yet(
            "phase-3-ui-2",
            "UI: dead letters, held, cost, workers, cluster",
            "console",
            "All but cost, which the server does not know yet.",
            Http("GET /api/v1/usage/summary"),
        ),
        works("phase-3-ui-3", "UI: mobile, dark mode, enqueue dialog", "From 360 pixels; also light."),
        works("phase-3-ui-4", "UI: date ranges, bulk progress, cache headers", "`created_after:1h` in a filter."),
        _done(3, 4, "DNS discovery", "`--discover dns --discover-dns-name`."),
        not_yet("phase-3-helm", "Helm chart", "Helm", "Kustomize: `k8s/base`."),
        works(
            "phase-3-rebuild",
            "admin endpoint to rebuild SQLite",
            "`POST /admin/rebuild-read-db`, and under the seed's name.",
            post("/admin/rebuild-sqlite?wait=true", "", {"status": "ok", "rebuilt": True, "duration_ms": float}),
        ),
        differs(
            "phase-3-mirror-counters",
            "mirror lag and dropped updates",
            "Lag is in `/metrics` and the status; nothing is dropped.",
            get("/cluster/status", {"mirror": {"lag_ms": float}}),
        ),
        works(
            "phase-3-status-blocks",
            "`snapshot`, `sqlite_mirror`, `sqlite_rebuild` in the cluster's status",
            "`snapshot` for each shard.",
            get("/cluster/status", '"snapshot"'),
            get("/cluster/status", '"sqlite_mirror"'),
            get("/cluster/status", '"sqlite_rebuild"'),
        ),
        _done(3, 5, "chaos tests", "See [chaos](../how-to/run-chaos.md)."),
        _done(3, 6, "cluster tests in one process", "Whole clusters are [simulated](../explanation/raft.md)."),
        works("phase-3-typescript", "TypeScript client", "[`sdk/typescript`](../../sdk/typescript/README.md)."),
        works("phase-3-python", "Python client", "[`Client` and `AsyncClient`](../how-to/use-the-python-client.md)."),
    ),
)

_COST = "Tables are in read.db, empty."

AI = Section(
    "Phase 4: AI",
    (
        not_yet(
            "phase-4-usage",
            "token and cost tracking on ack and heartbeat, `job_usage`",
            "AI",
            _COST,
            post("/ack/$JOB", '{"usage": {"input_tokens": 10, "output_tokens": 2, "model": "m"}}'),
            before=[
                post("/enqueue", '{"queue": "seed.usage"}', status=201, JOB="job_id"),
                post("/fetch", '{"queues": ["seed.usage"], "worker_id": "w"}'),
            ],
            fresh=["seed.usage"],
        ),
        not_yet("phase-4-summary", "usage summary", "AI", "None.", get("/usage/summary")),
        not_yet("phase-4-usage-cli", "`corvo usage`", "AI", "None.", Shell("corvo usage")),
        not_yet("phase-4-budgets", "budgets: daily, by job; hold, reject, alert", "AI", _COST, get("/budgets")),
        works(
            "phase-4-held",
            "`held` state, approve, reject, CLI",
            "See [act on jobs](../how-to/act-on-jobs.md).",
            Shell("corvo hold $JOB && corvo approve $JOB && corvo hold $JOB && corvo reject $JOB"),
            get("/jobs/$JOB", {"state": "dead"}),
            before=[post("/enqueue", '{"queue": "seed.held"}', status=201, JOB="job_id")],
        ),
        works(
            "phase-4-held-route",
            "`GET /api/v1/held`",
            "Also as `GET /jobs/held`.",
            get("/held", {"jobs": [..., {"id": "$JOB"}]}),
            before=[
                post("/enqueue", '{"queue": "seed.held"}', status=201, JOB="job_id"),
                post("/jobs/$JOB/hold"),
            ],
        ),
        not_yet(
            "phase-4-agents",
            "agent loop with guardrails",
            "AI",
            "None.",
            post("/enqueue", '{"queue": "seed.agent", "agent": {"max_iterations": 3}}', status=201),
        ),
        not_yet(
            "phase-4-iterations",
            "`job_iterations`",
            "AI",
            _COST,
            get("/jobs/$JOB/iterations"),
            before=[post("/enqueue", '{"queue": "seed.agent"}', status=201, JOB="job_id")],
        ),
        not_yet(
            "phase-4-replay",
            "replay from an iteration",
            "AI",
            "A job can be replayed from its checkpoint: `POST /jobs/{job_id}/replay`.",
        ),
        _done(4, 1, "job chains", "See [chains](../how-to/chains-and-dependencies.md)."),
        _done(4, 2, "result caching by unique jobs", "`unique_key` with `unique_until: period`."),
        not_yet("phase-4-ui-cost", "cost dashboard", "console", "None.", Http("GET /api/v1/usage/summary")),
        works("phase-4-ui-held", "held jobs view", "[The console](../how-to/use-the-console.md), `corvo held`."),
    ),
)

ECOSYSTEM = Section(
    "Phases 5 and 6: ecosystem, enterprise",
    (
        not_yet("phase-5-webhooks", "webhooks on events", "webhooks", "None.", get("/webhooks")),
        works(
            "phase-5-dependencies",
            "job B waits for job A",
            "`depends_on`; see [dependencies](../how-to/chains-and-dependencies.md).",
            post("/enqueue", '{"queue": "seed.deps", "depends_on": ["$JOB"]}', {"status": "scheduled"}, 201),
            before=[post("/enqueue", '{"queue": "seed.deps"}', status=201, JOB="job_id")],
        ),
        not_yet("phase-5-otel", "OpenTelemetry", "observability", "None.", Shell("corvo config --otel-enabled true")),
        not_yet("phase-5-rust", "Rust client", "languages", "None."),
        not_yet("phase-5-haskell", "Haskell client", "languages", "None."),
        works("phase-6-tenants", "multi-tenancy", "[Tenants](../how-to/tenants.md).", get("/namespaces")),
        works("phase-6-auth", "API keys, SSO", "Keys; [sign-on](../how-to/sign-on.md).", get("/settings/sso")),
        works("phase-6-rbac", "RBAC", "`corvo roles`.", get("/auth/roles")),
        not_yet(
            "phase-6-backup",
            "backup and restore of a tenant",
            "security",
            "Of a node: [back up](../how-to/back-up-and-restore.md).",
            get("/admin/backup"),
        ),
        not_yet("phase-6-cloud", "managed infrastructure", "cloud", "None."),
        not_yet("phase-6-billing", "billing, metering", "cloud", "None.", get("/billing/summary")),
        works(
            "phase-6-audit",
            "audit logging",
            "[The audit log](../how-to/audit.md).",
            Shell("corvo audit verify", ["ok: "]),
            before=[post("/queues/seed.audit/resume")],
        ),
        works(
            "phase-6-fulltext",
            "retention and full-text search (FTS5)",
            "`GET /search/fulltext`.",
            get("/search/fulltext?q=fernweh", {"results": [{"id": "$JOB"}]}),
            before=[post("/enqueue", '{"queue": "seed.text", "payload": {"t": "fernweh"}}', status=201, JOB="job_id")],
            fresh=["seed.text"],
        ),
        not_yet("phase-6-terraform", "Terraform provider", "packaging", "None."),
    ),
)

SECTIONS = (CORE, CLUSTER, HARDENING, AI, ECOSYSTEM)
