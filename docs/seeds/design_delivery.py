"""corvo-design.md: the console, clients, deployment, the paid service, the plan of phases."""

from docs.seeds.rows import Http, Row, Section, Shell, differs, get, not_yet, post, works


def _view(name: str, seed: str, where: str) -> Row:
    return works(f"ui-{name}", seed, f"In [the console](../how-to/use-the-console.md); in the shell {where}")


CONSOLE = Section(
    "The UI",
    (
        _view("dashboard-queues", "dashboard: queues with counts and rates", "`corvo top`, `corvo queues`."),
        _view("dashboard-workers", "dashboard: workers, jobs of their pool, uptime", "`corvo workers`."),
        _view("dashboard-cluster", "dashboard: nodes and their roles", "`corvo cluster status`."),
        _view("dashboard-failures", "dashboard: recent failures", "`corvo errors`, `corvo dead`, `corvo top`."),
        _view("queue", "queue detail: status, rates, limits, unique locks", "`corvo queue show`."),
        _view("queue-actions", "queue detail: pause, clear, drain", "`corvo pause`, `clear`, `drain`."),
        _view("search", "queue detail: search form with payload, jq, error and dates", "`corvo search`."),
        _view("bulk", "queue detail: bulk actions on selected jobs", "`corvo bulk`."),
        _view("job", "job detail: fields, progress, payload, attempts", "`corvo inspect`."),
        _view("job-timeline", "job detail: timeline", "`corvo events --job`."),
        _view("job-actions", "job detail: retry, cancel, move, delete", "the commands of these names."),
        _view("move", "dialog: move a job", "`corvo move`."),
        works(
            "move-reset-attempts",
            "move: reset the attempt counter",
            "`corvo move --reset-attempts`.",
            post("/jobs/$JOB/move", '{"queue": "seed.moved", "reset_attempts": true}'),
            get("/jobs/$JOB", {"queue": "seed.moved", "attempt": 0}),
            before=[
                post("/enqueue", '{"queue": "seed.movable"}', status=201, JOB="job_id"),
                post("/fetch", '{"queues": ["seed.movable"], "worker_id": "w"}'),
                post("/fail/$JOB", '{"error": "x", "retry": false}'),
            ],
            fresh=["seed.movable", "seed.moved"],
        ),
        works(
            "move-keep-priority",
            "move: keep the current priority, or not",
            "`corvo move --no-keep-priority`.",
            post("/jobs/$JOB/move", '{"queue": "seed.moved", "keep_priority": false}'),
            get("/jobs/$JOB", {"queue": "seed.moved", "priority": 2}),
            before=[
                post("/enqueue", '{"queue": "seed.movable", "priority": "high"}', status=201, JOB="job_id"),
            ],
            fresh=["seed.movable", "seed.moved"],
        ),
        _view("bulk-confirm", "dialog: confirm a bulk operation, with a preview", "`corvo bulk … --dry-run`."),
        _view(
            "bulk-progress",
            "dialog: progress of a bulk operation, cancel it",
            "`corvo bulk status`, `corvo bulk cancel`.",
        ),
    ),
)

_CURL = """curl -X POST http://localhost:8080/api/v1/enqueue \\
  -H "Content-Type: application/json" \\
  -d '{
    "queue": "emails.send",
    "payload": { "to": "user@example.com" },
    "unique_key": "welcome-user@example.com",
    "max_retries": 3
  }'"""

CLIENT = Section(
    "Client library contract",
    (
        works(
            "client-contract",
            "five duties of a client, none of the server's",
            "See [write a worker](../how-to/write-a-worker-in-any-language.md): about 40 lines of Python.",
        ),
        differs(
            "client-typescript",
            "example client in TypeScript, `CorvoWorker`",
            "`Worker` of [`sdk/typescript`](../../sdk/typescript/README.md).",
        ),
        works(
            "client-fetch-ack",
            "what it sends: `fetch` with `queues`, `worker_id`, `hostname`, `timeout`; `ack` with `result`; `fail` "
            "with `error`, `backtrace`",
            "The lease token is optional.",
            post(
                "/fetch",
                '{"queues": ["seed.client"], "worker_id": "w", "hostname": "h", "timeout": 30}',
                {"job_id": "$JOB"},
            ),
            post("/ack/$JOB", '{"result": {"ok": true}}'),
            before=[post("/enqueue", '{"queue": "seed.client"}', status=201, JOB="job_id")],
            fresh=["seed.client"],
        ),
        works(
            "client-curl",
            "enqueue with `curl`",
            "The seed's own line.",
            Shell(_CURL, ('"status":"pending"',)),
            fresh=["emails.send"],
        ),
    ),
)

_LOOP = """while true; do
  JOB=$(curl -s -X POST http://localhost:8080/api/v1/fetch \\
    -H "Content-Type: application/json" \\
    -d '{"queues": ["test"], "worker_id": "demo", "timeout": 30}')
  [ -z "$JOB" ] && continue
  JOB_ID=$(echo $JOB | jq -r .job_id)
  echo "Processing: $JOB"
  curl -s -X POST "http://localhost:8080/api/v1/ack/$JOB_ID" \\
    -H "Content-Type: application/json" -d '{}'
done"""

DEPLOYMENT = Section(
    "Deployment",
    (
        not_yet(
            "deploy-install",
            "`curl -fsSL https://get.corvo.dev | sh`",
            "packaging",
            "`make run` from a checkout, or the image.",
        ),
        works("deploy-server", "`corvo server`", "API and console at `:8080`."),
        works(
            "deploy-curl",
            'enqueue `{"queue": "test", "payload": {"hello": "world"}}` with `curl`',
            "The seed's own line.",
            Shell(
                "curl -X POST http://localhost:8080/api/v1/enqueue \\\n"
                '  -H "Content-Type: application/json" \\\n'
                """  -d '{"queue": "test", "payload": {"hello": "world"}}'""",
                ('"status":"pending"',),
            ),
        ),
        works(
            "deploy-loop",
            "a worker as a loop of `curl` and `jq`",
            "The seed's own lines, stopped after one job.",
            Shell(
                f"cat > worker.sh <<'END'\n{_LOOP}\nEND\n"
                "timeout 20 bash worker.sh > done.txt &\n"
                """until grep -q '"status":"ok"' done.txt; do sleep 0.05; done; kill $!; cat done.txt""",
                ("Processing: ", '"status":"ok"'),
            ),
            before=[post("/enqueue", '{"queue": "test", "payload": {"hello": "world"}}', status=201)],
            fresh=["test"],
        ),
        differs(
            "deploy-docker",
            "`docker run -d -p 8080:8080 -v corvo-data:/data corvo/corvo`",
            "The same with an image of your own: `docker build`, see [deploy](../how-to/deploy-on-kubernetes.md).",
        ),
        differs(
            "deploy-compose",
            "Compose: `server --bootstrap --node-id node-0 --raft-bind :9400`, then two `server --join corvo-0:9400 …`",
            "As written, with a volume for the secret: [run a cluster](../how-to/run-a-cluster.md#compose).",
            Shell(
                "echo s > secret; export CORVO_CLUSTER_SECRET_FILE=secret; "
                "corvo config --bootstrap --node-id node-0 --raft-bind :9400 && "
                "corvo config --join corvo-0:9400 --node-id node-1 --raft-bind :9400 && "
                "corvo config --join corvo-0:9400 --node-id node-2 --raft-bind :9400"
            ),
        ),
        not_yet(
            "deploy-helm",
            "`helm install corvo corvo/corvo --set cluster.enabled=true --set replicas=3`",
            "Helm",
            "`kubectl apply -k` with the manifests of `k8s`.",
        ),
    ),
)

STRUCTURE = Section(
    "Project structure",
    (
        differs(
            "structure-go",
            "`cmd`, `internal`, `proto`, `pkg`, `deploy`: Go",
            "See [architecture](../explanation/architecture.md).",
        ),
        works("structure-bench", "`cmd/bench`", "`corvo bench` and `python -m benchmarks.run`."),
        differs(
            "structure-proto",
            "`worker.proto`, Connect RPC",
            "A WebSocket with JSON or MessagePack: [stream](../how-to/use-the-stream.md).",
        ),
        differs("structure-resp", "RESP-compatible RPC server (legacy)", "Not built: legacy in the seed itself."),
        differs("structure-ids", "ULID ids", "26 characters: time and minter, after the shard: `s01_job_…`."),
        differs(
            "structure-migrations",
            "`migrations/001_initial.sql`",
            "read.db is rebuilt when its schema changes; there is nothing to migrate.",
        ),
        not_yet(
            "structure-client",
            "`pkg/client`: client and worker library",
            "languages",
            "In Python: `corvo-client`, with [a worker](../how-to/write-a-python-worker.md); none in Go.",
        ),
        works("structure-dockerfile", "`deploy/Dockerfile`", "`Dockerfile`."),
        not_yet("structure-compose", "`deploy/docker-compose.yml`", "packaging", "None."),
        works("structure-tests", "`tests/integration`", "`tests/system`."),
    ),
)

_NAMESPACES = "Names, ids, lists, search and events of each namespace are its own: [tenants](../how-to/tenants.md)."
_SIGN_ON = "[Sign-on](../how-to/sign-on.md) by OpenID Connect, or by a proxy that speaks SAML; `corvo roles`."

PAID = Section(
    "Paid service",
    (
        not_yet("paid-managed", "fully managed", "cloud", "Nothing."),
        works("paid-tenants", "multi-tenant isolation: namespaces", _NAMESPACES, Http("GET /api/v1/namespaces")),
        works("paid-sso", "SSO, RBAC", _SIGN_ON, Http("GET /api/v1/settings/sso")),
        not_yet(
            "paid-webhooks",
            "webhooks",
            "webhooks",
            "Follow the [events](../how-to/follow-events.md).",
            Http("GET /api/v1/webhooks"),
        ),
        not_yet(
            "paid-alerting",
            "alert rules",
            "observability",
            "Rules for Prometheus are in [monitor](../how-to/monitor.md).",
        ),
        works(
            "paid-retention",
            "extended retention, full-text search",
            "Retention by queue; `GET /search/fulltext`.",
            post("/queues/seed.retention/retention", '{"completed": "30d"}'),
            get("/search/fulltext?q=nothing-like-it", {"results": []}),
            before=[post("/enqueue", '{"queue": "seed.retention"}', status=201)],
        ),
        works(
            "paid-encryption", "encryption at rest", "[Payloads](../how-to/encrypt-payloads.md): `--payload-key-file`."
        ),
        works(
            "paid-audit",
            "audit log",
            "[The audit log](../how-to/audit.md).",
            get(
                "/audit-logs?consistent=true&path_prefix=/api/v1/queues/seed.audit/",
                {"audit_logs": [..., {"path": "/api/v1/queues/seed.audit/pause", "status_code": 200}]},
            ),
            before=[post("/queues/seed.audit/pause")],
        ),
        not_yet("paid-sla", "SLA, support", "cloud", "None."),
    ),
)

NOT = Section(
    "What Corvo is not",
    (
        differs(
            "not-workflow",
            "no workflow engine: no DAGs, no replay",
            "Dependencies make a DAG; a job can be replayed from its checkpoint.",
        ),
        works("not-cron", "no replacement of cron", "Schedules make jobs."),
        differs(
            "not-broker",
            "jobs are processed exactly once",
            "A job may run more than once, and completes once: [delivery](../explanation/delivery-promise.md).",
        ),
    ),
)

SECTIONS = (CONSOLE, CLIENT, STRUCTURE, DEPLOYMENT, PAID, NOT)
