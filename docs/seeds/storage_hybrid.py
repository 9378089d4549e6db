"""corvo-storage-hybrid.md."""

from docs.seeds.rows import Http, Row, Section, Shell, differs, get, not_yet, works

_SEE = "See [keys](keys.md)."


def _key(name: str, seed: str, where: str = _SEE, is_same: bool = True) -> Row:
    return (works if is_same else differs)(f"hybrid-key-{name}", seed, where)


DESIGN = Section(
    "Architecture and dependencies",
    (
        differs("hybrid-pebble", "Pebble is the source of truth", "LevelDB; see [storage](../explanation/storage.md)."),
        works("hybrid-sqlite", "SQLite is the view", "See [read.db](../explanation/read-db.md)."),
        differs("hybrid-raft", "hashicorp/raft", "Our own; see [Raft](../explanation/raft.md)."),
        differs(
            "hybrid-throughput", "20,000 to 24,000 operations a second", "Measured in [benchmarks](benchmarks.md)."
        ),
        works("hybrid-forwarding", "followers forward writes", "Inside the cluster, unseen by clients."),
        works("hybrid-determinism", "the leader computes all timestamps", "Part of each entry."),
        works("hybrid-backpressure", "429 with `Retry-After`", "And `retry_after_ms`."),
        differs(
            "hybrid-raft-store",
            "`--raft-store`: badger, bolt, pebble",
            "LevelDB only.",
            Shell("corvo config --raft-store bolt", code=2),
        ),
    ),
)

KEYS = Section(
    "Key layout",
    (
        _key("j", "`j|{job_id}` → JSON", "MessagePack.", False),
        _key("je", "`je|{job_id}\\x00{attempt:4BE}` → JSON", "By claim.", False),
        _key("p", "`p|{queue}\\x00{priority:1B}{created_ns:8BE}{job_id}`", "By position.", False),
        _key("a", "`a|{queue}\\x00{job_id}` → `lease_expires_ns:8BE`"),
        _key("s", "`s|{queue}\\x00{scheduled_ns:8BE}{job_id}`"),
        _key("r", "`r|{queue}\\x00{retry_ns:8BE}{job_id}`"),
        _key("qc", "`qc|{queue}`", "Part of `qn|{queue}`.", False),
        _key("qn", "`qn|{queue}`"),
        _key("u", "`u|{queue}\\x00{unique_key}`"),
        _key("l", "`l|{queue}\\x00{fetched_ns:8BE}{random:8BE}`", "Without the random part.", False),
        _key("b", "`b|{batch_id}`"),
        _key("w", "`w|{worker_id}`"),
        _key("sc", "`sc|{schedule_id}`"),
        _key("ev", "`ev|{seq:8BE}` (optional)", "Always written."),
    ),
)

OPERATIONS = (
    "Enqueue EnqueueBatch Fetch FetchBatch Ack Fail Heartbeat RetryJob CancelJob MoveJob DeleteJob PauseQueue "
    "ResumeQueue ClearQueue DeleteQueue SetConcurrency SetThrottle RemoveThrottle Promote Reclaim BulkAction "
    "CleanUnique CleanRateLimit ExpireJobs PurgeJobs Multi"
)

MACHINE = Section(
    "Operations and machine",
    (
        differs(
            "hybrid-ops",
            ", ".join(f"`{name}`" for name in OPERATIONS.split()),
            "The same under our names; no `Multi`, since an entry is a list, and no cleaning.",
        ),
        differs(
            "hybrid-fsm",
            "`FSM` with `pebbleNoSync`, `sqliteMirror`, `sqliteAsync`, `lifecycleEvents`",
            "No switches but `--fsync`.",
        ),
        differs(
            "hybrid-apply",
            "read, batch, commit, mirror, event, answer",
            "One batch a turn holds log, state and events; the mirror pulls.",
        ),
        differs("hybrid-snapshot", "snapshot and restore by tar", "In pieces; see [Raft](../explanation/raft.md)."),
    ),
)

PIPELINE = Section(
    "Cluster and write pipeline",
    (
        differs(
            "hybrid-types",
            "`Cluster`: `Apply`, `IsLeader`, `LeaderAddr`, `ClusterStatus`, `EventLog`",
            "Status and events are routes.",
        ),
        differs(
            "hybrid-admission",
            "`ApplyMaxInFlight` 96, `ApplyMaxTotalInFly` 2048, `ApplyMaxPending` 4096",
            "16,384 operations a shard; see [limits](limits.md).",
        ),
        differs("hybrid-retry-after", "`Retry-After` of 1 to 10 ms", "How long the queue takes at its present pace."),
        differs("hybrid-timer", "adaptive timer", "No timer."),
        differs(
            "hybrid-config",
            "`ClusterConfig`: 20 parameters",
            "`NodeID`, `DataDir`, `RaftBind`, `RaftAdvertise`, `JoinAddr` are [settings](settings.md); the rest has "
            "nothing to tune.",
        ),
    ),
)

DURABILITY = Section(
    "Durability",
    (
        works("hybrid-durable-single", "a single node syncs every write", "The default: `--fsync on`."),
        differs("hybrid-durable-cluster", "a cluster does not sync", "It does; `--fsync off` is a choice."),
        differs("hybrid-early-snapshot", "a snapshot when a leader starts", "Not needed."),
        works("hybrid-rebuildable", "SQLite can be rebuilt", "`POST /admin/rebuild-read-db`, or delete the file."),
        differs("hybrid-store-files", "files of three log stores", "One."),
    ),
)

SERVER = Section(
    "Store, server, scheduler",
    (
        differs(
            "hybrid-store",
            "`store.Store`",
            "The gateway asks shards and read.db; see [a request](../explanation/a-request.md).",
        ),
        works("hybrid-proxy", "leader proxy for writes", "By the shards."),
        works(
            "hybrid-status",
            "`handleClusterStatus`",
            "`GET /cluster/status`.",
            get("/cluster/status", {"status": "healthy"}),
        ),
        works(
            "hybrid-status-histograms",
            "with admission figures and histograms",
            "For each shard and for the node.",
            get("/cluster/status", '"queue_time_hist"'),
            get("/cluster/status", '"apply_time_hist"'),
        ),
        differs(
            "hybrid-healthz",
            "`/healthz` pings Pebble and SQLite",
            "It asks every shard; `/readyz` also checks read.db.",
            Http("GET /healthz"),
            Http("GET /readyz"),
        ),
        works("hybrid-scheduler", "the scheduler runs on the leader", "Of each shard."),
    ),
)


def _flag(name: str, seed: str, line: str, where: str) -> Row:
    return works(f"flag-{name}", f"`{seed}`", where, Shell(f"corvo config {line}"))


FLAGS = Section(
    "CLI flags",
    (
        _flag("bind", "--bind :8080", "--bind :8080", "By default `127.0.0.1:8080`."),
        _flag("data-dir", "--data-dir data", "--data-dir data", "The default."),
        _flag("raft-bind", "--raft-bind :9000", "--raft-bind :9000", "By default `:9400`, as in corvo-design.md."),
        _flag("raft-advertise", "--raft-advertise", "--raft-advertise 127.0.0.1:9400", "Worked out when not given."),
        _flag("node-id", "--node-id node-1", "--node-id node-1", "The default."),
        works(
            "flag-bootstrap",
            "`--bootstrap`",
            "Others can join the node; without the flag it listens for nobody.",
            Shell("corvo config --bootstrap"),
        ),
        not_yet(
            "flag-bootstrap-false",
            "`--bootstrap=false`",
            "settings",
            "`--join` or `--peers` say so.",
            Shell("corvo config --bootstrap=false"),
        ),
        _flag("join", "--join <addr>", "--join 127.0.0.1:9400 --raft-bind 127.0.0.1:9500", "One or several."),
        differs(
            "flag-raft-store",
            "`--raft-store badger`",
            "LevelDB only.",
            Shell("corvo config --raft-store badger", code=2),
        ),
        _flag("log-level", "--log-level debug, info, error", "--log-level debug", "Also `info` and `error`."),
        works(
            "flag-log-level-warn",
            "`--log-level warn`",
            "A second name of `warning`.",
            Shell("corvo config --log-level warn"),
        ),
        differs(
            "flag-lifecycle-events",
            "`--lifecycle-events`",
            "Always on.",
            Shell("corvo config --lifecycle-events", code=2),
        ),
    ),
)

VERIFY = Section(
    "Observability, files, verification",
    (
        works("hybrid-histograms", "queue time and apply time", "In [metrics](metrics.md)."),
        works(
            "hybrid-events",
            "event log by sequence number",
            "A number for each shard: `GET /cluster/events`.",
            get("/cluster/events?after_seq=0", {"events": [...]}),
        ),
        differs("hybrid-files", "Go files", "See [architecture](../explanation/architecture.md)."),
        differs(
            "hybrid-go-test",
            "`go test ./internal/kv/...`, `./internal/raft/...`, `./internal/store/...`, `./...`",
            "`make test`, `make simulate`.",
        ),
        differs("hybrid-go-build", "`go build ./cmd/corvo`", "`make setup`."),
        works(
            "hybrid-run",
            "`./corvo server --bootstrap --data-dir /tmp/corvo-test`",
            "One node, which others can join.",
            Shell("corvo config --bootstrap --data-dir /tmp/corvo-test"),
        ),
        works("hybrid-bench", "`corvo bench`", "See [benchmark](../how-to/benchmark.md)."),
    ),
)

SECTIONS = (DESIGN, KEYS, MACHINE, PIPELINE, DURABILITY, SERVER, FLAGS, VERIFY)
