"""corvo-design.md: principles, the table of features, the picture of the server, its components."""

from docs.seeds.rows import Http, Section, Shell, differs, works

PRINCIPLES = Section(
    "Design principles",
    (
        works(
            "principle-smart-server",
            "smart server, dumb clients",
            "All rules of a job's life are in the server; a [worker](../how-to/write-a-worker-in-any-language.md) "
            "needs fetch, ack, fail and heartbeat.",
        ),
        differs(
            "principle-one-binary",
            "single binary, single process, zero dependencies",
            "One command, `corvo server`, and no external service; but a Python package, and several "
            "[processes](../explanation/architecture.md), so that all cores are used and each can crash alone.",
        ),
        works(
            "principle-clustering",
            "clustering that manages itself",
            "Raft over the nodes, no coordination service: [run a cluster](../how-to/run-a-cluster.md).",
        ),
        works("principle-languages", "HTTP/JSON; enqueue with `curl`", "See [HTTP API](http-api.md)."),
        works(
            "principle-kubernetes",
            "Kubernetes-native",
            "StatefulSet, probes, graceful stop: [deploy on Kubernetes](../how-to/deploy-on-kubernetes.md).",
        ),
        works(
            "principle-observable",
            "every job has a full trail visible in the UI",
            "[The console](../how-to/use-the-console.md): its way, attempts and timeline; `corvo inspect`, "
            "[`corvo why`](../how-to/why-not-running.md).",
        ),
    ),
)

FEATURES = Section(
    "Feature set",
    (
        works("feature-basics", "enqueue, process, ack", "`POST /enqueue`, `/fetch`, `/ack/{job_id}`."),
        works("feature-retries", "retries and configurable backoff", "See [retries](../how-to/retries.md)."),
        works("feature-scheduled", "scheduled and delayed jobs", "See [schedule a job](../how-to/schedule-a-job.md)."),
        works("feature-cron", "cron, recurring jobs", "See [schedules](../how-to/schedules.md)."),
        works(
            "feature-priority",
            "priority (3 tiers)",
            "`critical`, `high`, `normal`; see [ordering](../explanation/shards-and-ordering.md).",
        ),
        works("feature-unique", "unique, singleton jobs", "See [unique jobs](../how-to/unique-jobs.md)."),
        works("feature-dead-letters", "dead letter queue", "`GET /jobs/dead`, `corvo dead`."),
        works("feature-expiration", "job expiration (TTL)", "`expire_after` at enqueue."),
        works("feature-pause", "queue pause and resume", "See [control queues](../how-to/control-queues.md)."),
        works("feature-throttle", "throttling, rate limiting", "See [control queues](../how-to/control-queues.md)."),
        works("feature-batches", "batches with a callback", "See [batches](../how-to/batches.md)."),
        works(
            "feature-progress", "job progress", "`progress` in a heartbeat; see [long jobs](../how-to/long-jobs.md)."
        ),
        works("feature-callbacks", "completion callbacks", "Callbacks of [batches](../how-to/batches.md)."),
        works("feature-mutate", "mutate API (bulk operations)", "See [many jobs](../how-to/bulk.md)."),
        works("feature-singleton-queues", "singleton queues", "`POST /queues/{name}/concurrency` with 1."),
        works("feature-ui", "web UI", "[The console](../how-to/use-the-console.md)."),
        works("feature-agnostic", "language agnostic", "HTTP and JSON."),
        works("feature-cluster", "clustering, automatic", "See [run a cluster](../how-to/run-a-cluster.md)."),
        works("feature-checkpoints", "checkpoints of long jobs", "See [long jobs](../how-to/long-jobs.md)."),
        works(
            "feature-cancellation", "cancellation, pending and active", "See [act on jobs](../how-to/act-on-jobs.md)."
        ),
        works("feature-chains", "job chains", "See [chains](../how-to/chains-and-dependencies.md)."),
        works("feature-metrics", "Prometheus metrics", "See [metrics](metrics.md).", Http("GET /metrics")),
    ),
)

OVERVIEW = Section(
    "Architecture overview",
    (
        works("overview-http-port", "HTTP API at `:8080`", "`--bind`, by default `127.0.0.1:8080`."),
        works("overview-ui-path", "web UI at `:8080/ui`", "[The console](../how-to/use-the-console.md)."),
        works("overview-raft-port", "Raft at `:9400`", "`--raft-bind`; shard *i* listens *i* ports further on."),
        works(
            "overview-scheduler",
            "scheduler on the leader: cron, delayed jobs, leases, expiry",
            "The leader of each shard does its own upkeep when something is due.",
        ),
        differs(
            "overview-store",
            "FSM on every node: Pebble (source of truth), SQLite (view)",
            "LevelDB is the source of truth; a mirror process writes [read.db](../explanation/read-db.md) behind it.",
        ),
        differs(
            "overview-writes",
            "writes: bounded queue, group commit, one Raft entry",
            "All that waits at a shard becomes one entry a [turn](../decisions/0002-one-synced-batch-a-turn.md).",
        ),
        works(
            "overview-reads",
            "reads: local SQLite, any node",
            "Lists and search; `GET /jobs/{job_id}` asks the shard itself and is never old.",
        ),
        works("overview-fetch-is-write", "a fetch goes through Raft", "A claim is an entry of the log."),
        works(
            "overview-forwarding",
            "followers proxy writes to the leader",
            "See [followers forward calls](../decisions/0011-followers-pass-calls-on.md).",
        ),
        differs(
            "overview-stream",
            "`StreamLifecycle` answers `NOT_LEADER` with the leader's address",
            "A [stream](../how-to/use-the-stream.md) may be opened at any node; each shard has its own leader.",
        ),
        differs(
            "overview-proxy-header",
            "`X-Corvo-Proxy-Stream: 1`",
            "Not needed: no stream is ever redirected to another node.",
        ),
        works(
            "overview-determinism",
            "timestamps come from the leader",
            "The state machine has no clock; each entry carries its time.",
        ),
        works(
            "overview-backpressure",
            "429 with retry hints",
            "`OVERLOADED` with `retry_after_ms` and `Retry-After`; see [errors](errors.md).",
        ),
    ),
)

COMPONENTS = Section(
    "Components",
    (
        differs("component-pebble", "Pebble", "LevelDB, one a shard; see [storage](../explanation/storage.md)."),
        works("component-fetch-seek", "fetch is a seek to the queue's first key", "See [keys](keys.md)."),
        works(
            "component-sqlite",
            "SQLite mirror, WAL, rebuildable",
            "[read.db](../explanation/read-db.md); PostgreSQL can take its place.",
        ),
        differs(
            "component-raft",
            "hashicorp/raft",
            "Our own Raft without I/O, [simulated](../explanation/raft.md); a group for each shard.",
        ),
        differs(
            "component-snapshots",
            "snapshots: Pebble checkpoint and `VACUUM INTO`",
            "Records of the state in pieces, [installed by a restart]"
            "(../decisions/0014-snapshots-are-installed-by-a-restart.md); read.db is not part of them.",
        ),
        differs(
            "component-raft-store",
            "`--raft-store`: `badger`, `bolt`, `pebble`",
            "No choice: log and state are in one LevelDB, so that one sync covers both.",
            Shell("corvo config --raft-store badger", code=2),
        ),
        works("component-protocol", "worker protocol", "enqueue, fetch, ack, fail, heartbeat, progress over HTTP."),
        works("component-management", "management API", "pause, resume, retry, cancel, inspect over HTTP."),
        works("component-spa", "embedded web UI, live by SSE", "[The console](../how-to/use-the-console.md)."),
        works("component-worker-sigterm", "workers handle SIGTERM", "Rules in [long jobs](../how-to/long-jobs.md)."),
    ),
)

SECTIONS = (PRINCIPLES, FEATURES, OVERVIEW, COMPONENTS)
