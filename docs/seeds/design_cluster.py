"""corvo-design.md: clustering, deployment modes, durability, the write pipeline."""

from docs.seeds.rows import Http, Row, Section, Shell, differs, get, not_yet, works

_RAFT = "See [Raft](../explanation/raft.md)."

OPERATIONS = (
    "Enqueue EnqueueBatch Fetch Ack Fail Heartbeat RetryJob CancelJob MoveJob DeleteJob PauseQueue ResumeQueue "
    "ClearQueue DeleteQueue SetConcurrency SetThrottle RemoveThrottle Promote Reclaim BulkAction CleanUnique "
    "CleanRateLimit"
)

CLUSTER = Section(
    "Clustering",
    (
        works("cluster-overview", "three instances elect, replicate and fail over", _RAFT),
        works("cluster-writes", "any node takes a write, the leader applies it", _RAFT),
        works("cluster-reads", "`jobs/search` from the local view", "`lag_ms` says how old it may be."),
        works(
            "cluster-fsm",
            "each entry is applied on every node",
            "By a pure machine; the mirror writes read.db afterwards, so no write waits for it.",
        ),
        differs(
            "cluster-ops",
            "operations of the log: " + ", ".join(f"`{name}`" for name in OPERATIONS.split()),
            "All are there under our names, and more; each is one file. None is for cleaning: locks and rates end at "
            "their own time.",
        ),
        differs(
            "cluster-types",
            "Go types `Op`, `FSM`, `Cluster`, `Store`",
            "Python; see [architecture](../explanation/architecture.md).",
        ),
        works(
            "cluster-join",
            "`--bootstrap` makes a cluster of one, `--join <addr>` joins one",
            "The nodes that join need a copy of the first one's secret: [run a cluster](../how-to/run-a-cluster.md).",
        ),
        works(
            "cluster-bootstrap-flag",
            "`corvo server --bootstrap`, then `--join`",
            "As written, with `--cluster-secret-file` for the nodes that join.",
            Shell("corvo config --bootstrap --raft-bind 127.0.0.1:9400"),
        ),
        works(
            "cluster-discover",
            "`--discover=dns` by the headless service",
            "The name is that of the StatefulSet's service, or `--discover-dns-name`.",
        ),
        differs(
            "cluster-election",
            "re-election after 10 s by default",
            "Between 0.5 and 1 s: `--election-timeout`.",
            Shell("corvo config --election-timeout 10 --heartbeat-interval 1", ("10",)),
        ),
        works("cluster-quorum", "a write is committed by 2 of 3", _RAFT),
        works(
            "cluster-failover",
            "workers notice nothing of a failover",
            "Requests are repeated by the gateway for 1.6 s.",
        ),
        works("cluster-rejoin", "a node comes back as a follower and catches up", _RAFT),
        differs(
            "cluster-snapshots",
            "a snapshot every 10,000 entries, with tar and gzip",
            "The state on disk is the snapshot; it is sent in pieces when a follower needs it.",
        ),
        differs("cluster-ports", "ports 8080 and 9400", "9400 and one more for each further shard."),
    ),
)


def _manifest(name: str, seed: str, where: str) -> Row:
    return works(f"k8s-{name}", seed, where)


KUBERNETES = Section(
    "Kubernetes, clustered",
    (
        differs(
            "k8s-statefulset",
            'StatefulSet `corvo`, 3 replicas, `args: ["server", "--discover=dns", "--raft-bind", ":9400"]`',
            "In `k8s/base`, by settings instead of arguments, with a secret.",
        ),
        differs(
            "k8s-args",
            '`["server", "--discover=dns", "--raft-bind", ":9400"]`',
            "As written, with a secret: `CORVO_CLUSTER_SECRET_FILE`.",
        ),
        differs(
            "k8s-probes", "readiness and liveness by `/healthz`", "`/readyz` and `/livez`; `/healthz` also exists."
        ),
        works("k8s-healthz", "`GET /healthz`", "200 while every shard has a leader.", Http("GET /healthz")),
        _manifest("volumes", "volume of 10Gi at `/data`", "In `k8s/base`."),
        differs("k8s-headless", "headless service `corvo-internal`", "It is called `corvo-nodes`."),
        _manifest("service", "service `corvo` at 8080", "In `k8s/base`."),
    ),
)

MODES = Section(
    "Deployment modes",
    (
        works(
            "mode-single",
            "`corvo server --bootstrap --data-dir /var/lib/corvo`",
            "`--bootstrap` lets others join; without it the node listens for nobody.",
            Shell("corvo config --bootstrap --data-dir /var/lib/corvo", ("/var/lib/corvo",)),
        ),
        differs(
            "mode-clustered",
            "`corvo server --join node1:9400 --raft-bind :9400 --node-id node-2`",
            "Off loopback the nodes need a secret: `--cluster-secret-file`.",
            Shell(
                "echo s > secret; "
                "corvo config --join node1:9400 --raft-bind :9400 --node-id node-2 --cluster-secret-file secret",
                ("node1:9400",),
            ),
        ),
        works(
            "mode-federated",
            "federated clusters by queue",
            "Independent clusters need no support. Within one, queues are spread over shards.",
        ),
        not_yet(
            "mode-gateway",
            "federation gateway (future work of the seed)",
            "federation",
            "Point clients at their cluster.",
        ),
        not_yet("mode-cloud", "Corvo Cloud", "cloud", "No managed service."),
    ),
)

DURABILITY = Section(
    "Durability",
    (
        differs(
            "durable-default",
            "`pebbleNoSync=true`, `raftNoSync=true` by default",
            "fsync is on: what is acknowledged survives a power cut. `--fsync off` is the seed's default.",
            Shell("corvo config --fsync off", ("off",)),
        ),
        works(
            "durable-flag",
            "`--durable`",
            "The same as `--fsync on`, the default.",
            Shell("corvo config --durable"),
        ),
        differs("durable-anchor", "the Raft log is the anchor", "Log and state are one LevelDB and one batch."),
        differs(
            "durable-early-snapshot",
            "a forced snapshot when a leader starts",
            "Not needed: log and state cannot part.",
        ),
        works(
            "durable-mirror", "a mirror that fails does not fail a write", "See [read.db](../explanation/read-db.md)."
        ),
        differs(
            "durable-mirror-async", "`--sqlite-mirror-async`", "The mirror is always behind; there is no other mode."
        ),
    ),
)

PIPELINE = Section(
    "Write pipeline and backpressure",
    (
        differs(
            "pipeline-batching",
            "group commit with an adaptive timer",
            "No timer: what came while the last batch was written is the next one.",
        ),
        differs(
            "pipeline-fetch-permits",
            "permits for each queue's fetches, `ApplyMaxFetchQueueInFly` 32",
            "Fetches that find nothing wait in memory, up to 100,000 a shard, and cost no entry.",
        ),
        differs(
            "pipeline-pending",
            "`ApplyMaxPending` 4096, then overloaded with a retry hint",
            "16,384 operations a shard; see [limits](limits.md). 429 with `retry_after_ms`.",
        ),
        differs("pipeline-sub-batches", "`ApplySubBatchMax` 512", "An entry has at most 8 MiB."),
        differs(
            "pipeline-settings",
            "`ApplyBatchMax`, `ApplyBatchWindow`, `ApplyBatchMinWait`, `ApplyBatchExtendAt`",
            "Nothing to tune.",
        ),
        works(
            "pipeline-histograms",
            "histograms of queue time and apply time",
            "In [metrics](metrics.md).",
            Http("GET /metrics", answer="corvo_raft_queue_time_seconds_bucket"),
            Http("GET /metrics", answer="corvo_raft_apply_time_seconds_bucket"),
        ),
        works(
            "pipeline-status",
            "both in `/api/v1/cluster/status`: p50, p90, p99, avg, buckets",
            "For each shard and for the node; also in metrics.",
            get("/cluster/status", '"queue_time_hist"'),
            get("/cluster/status", '"apply_time_hist"'),
            get("/cluster/status", '"p99"'),
        ),
    ),
)

SECTIONS = (CLUSTER, KUBERNETES, MODES, DURABILITY, PIPELINE)
