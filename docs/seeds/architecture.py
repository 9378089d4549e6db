"""corvo-architecture.md: structure, write path, keys, shards, stream, mirror."""

from docs.seeds.rows import (
    Row,
    Section,
    Shell,
    Table,
    differs,
    enqueued,
    get,
    not_yet,
    post,
    works,
)

_TREE = "See [architecture](../explanation/architecture.md)."

STRUCTURE = Section(
    "Project structure",
    (
        differs("arch-cmd", "`cmd/corvo`", "`corvo.cli`, a Python package."),
        differs("arch-raft", "`internal/raft`, `kv`, `store`", _TREE),
        differs("arch-rpc", "`internal/rpcconnect`: ConnectRPC", "The gateway serves HTTP and a WebSocket."),
        differs("arch-server", "`internal/server`: routes, auth, metrics, leader proxy", "`gateway`; auth is missing."),
        differs("arch-scheduler", "`internal/scheduler`", "Upkeep of each shard."),
        not_yet("arch-enterprise", "`internal/enterprise`: licence, RBAC, SSO, audit, namespaces", "security", "None."),
        works("arch-sdk", "`sdk/go`: client and worker", "[`sdk/go`](../../sdk/go/README.md)."),
        differs("arch-proto", "`worker.proto`", "No protobuf: JSON and MessagePack."),
        differs("arch-ui", "`ui`: React SPA", "`gateway/console`: Preact, and a tenth of the size."),
    ),
)

WRITES = Section(
    "Write path, batching, codec",
    (
        works("arch-write-path", "every mutation goes through Raft", "See [a request](../explanation/a-request.md)."),
        differs(
            "arch-prefetch",
            "`preResolveFetch` on the caller",
            "A fetch finds its jobs while it is applied: a seek each.",
        ),
        differs("arch-batching", "100 µs to 2 ms, 128 operations", "No timer; up to 8 MiB an entry."),
        differs(
            "arch-cb1",
            "CB1 binary codec",
            "MessagePack, with a tag for each operation; [golden bytes](../explanation/storage.md) in tests.",
        ),
        differs(
            "arch-multi-mode",
            "`applyMultiMode`: grouped, indexed, individual",
            "One order: that of arrival; one write batch a turn.",
        ),
        works(
            "arch-acks-first",
            "slots that acks free are seen by fetches of the same entry",
            "In order of arrival; a frame of a stream has its acks first.",
        ),
    ),
)

_SEE = "See [keys](keys.md)."


def _key(name: str, seed: str, where: str = _SEE, is_same: bool = True) -> Row:
    return (works if is_same else differs)(f"arch-key-{name}", seed, where)


KEYS = Section(
    "Key layout",
    (
        _key("separators", "`|` after a prefix, NUL inside, big-endian numbers"),
        _key("j", "`j|{job_id}` → MessagePack"),
        _key("je", "`je|{job_id}\\x00{attempt:4BE}`", "By claim.", False),
        _key("p", "`p|{queue}\\x00{priority:1B}{created_ns:8BE}{job_id}`", "By position.", False),
        _key("a", "`a|{queue}\\x00{job_id}` → `lease_ns:8BE`", "And the number of the claim."),
        _key("s", "`s|{queue}\\x00{scheduled_ns:8BE}{job_id}`"),
        _key("r", "`r|{queue}\\x00{retry_ns:8BE}{job_id}`"),
        _key("qa", "`qa|{queue}\\x00{created_ns:8BE}{job_id}`", "By position.", False),
        _key("qac", "`qac|{queue}`", "Cursors are part of `qn|{queue}`.", False),
        _key("qc", "`qc|{queue}`", "Part of `qn|{queue}`.", False),
        _key("qn", "`qn|{queue}`"),
        _key("u", "`u|{queue}\\x00{unique_key}`"),
        _key("w", "`w|{worker_id}`"),
        _key("b", "`b|{batch_id}`"),
        _key("ev", "`ev|{seq:8BE}`", "Events of one entry are one record, under the number of the first."),
        works(
            "arch-append-log",
            "normal jobs in `qa|`, high and critical ones in `p|`",
            "`p|` first.",
            post("/fetch", '{"queues": ["seed.append"], "worker_id": "w"}', {"job_id": "$HIGH"}),
            before=[enqueued("seed.append"), enqueued("seed.append", more='"priority": "high"', name="HIGH")],
            fresh=["seed.append"],
        ),
        differs(
            "arch-cursor-rescan",
            "rescan before the cursor for late timestamps",
            "Not needed: positions only grow.",
        ),
        differs(
            "arch-has-pending",
            "`HasPendingJobs` cache, 50 to 500 ms",
            "A shard is asked; fetches that find nothing wait there and are woken.",
        ),
    ),
)

SHARDS = Section(
    "Sharding",
    (
        differs("arch-shards", "N groups in one process", "A process each, so that all cores are used."),
        works(
            "arch-shard-of-queue",
            "queue → shard: `fnv32a(queue_name) % shard_count`",
            "The same; see [shards](../explanation/shards-and-ordering.md).",
        ),
        works(
            "arch-shard-of-job",
            "ids `s{NN}_{jobID}`",
            "A moved job is found from there.",
            post("/enqueue", '{"queue": "seed.ids"}', {"job_id": str}, 201, JOB="job_id"),
            Shell("echo $JOB | grep -E '^s0[012]_job_[0-9a-z]{26}$'"),
        ),
        works(
            "arch-fan-out",
            "fetch over the shards of its queues",
            "See [await, then claim](../decisions/0008-await-then-claim.md).",
        ),
        differs("arch-broadcast", "maintenance is sent to all shards", "Each shard does its own."),
        works("arch-shared-sqlite", "all shards share one SQLite file", "Written by the mirror alone."),
        works(
            "arch-raft-shards",
            "`--raft-shards`",
            "A second name of `--shards`.",
            Shell("corvo config --raft-shards 3"),
        ),
    ),
)

_FRAME = """import json
from websockets.sync.client import connect
with connect("$URL/api/v1/stream".replace("http", "ws"), compression=None) as stream:
    stream.send(json.dumps({"id": 7, "enqueue": [{"queue": "seed.stream", "payload": {}}],
                            "fetch": {"queues": ["seed.stream"], "worker_id": "w", "count": 1}}))
    answer = json.loads(stream.recv())
    print(answer["id"], len(answer["enqueued"]), len(answer["jobs"]))
    stream.send(json.dumps({"id": 8, "ack": [{"job_id": job["job_id"]} for job in answer["jobs"]]}))
    print(json.loads(stream.recv())["acked"][0]["status"])
"""

STREAM = Section(
    "StreamLifecycle",
    (
        differs(
            "arch-stream",
            "a bidirectional stream of frames: `request_id`, `acks`, `fetch_count`, `queues`, `enqueues`",
            "A WebSocket, `GET /api/v1/stream`; frames have `id`, `ack`, `fetch`, `enqueue`, also `fail` and "
            "`heartbeat`: [stream](../how-to/use-the-stream.md).",
            Shell("cat > frame.py <<END\n" + _FRAME + "END\npython frame.py", ("7 1 1", "ok")),
            fresh=["seed.stream"],
        ),
        differs(
            "arch-stream-answer",
            "answers: `request_id`, `acked`, `jobs`, `enqueued_job_ids`, `error`, `leader_addr`",
            "`id`, `acked`, `jobs`, `enqueued`, an error beside each item; no leader, since any node serves.",
        ),
        differs("arch-stream-rate", "500 frames a second and stream", "64 frames in flight on a stream."),
        differs("arch-stream-semaphore", "2048 frames at a time over all streams", "4,096, then `OVERLOADED`."),
        differs("arch-stream-leader", "`NOT_LEADER` with `leader_addr`", "Not needed."),
        works("arch-stream-acks", "acks before fetches", "What a frame carries is applied before its fetch."),
        differs("arch-stream-idle", "100 ms pause after an empty fetch", "`wait_ms`: the answer waits for a job."),
        differs(
            "arch-stream-strikes",
            "10 errors in a row close the stream",
            "Errors close nothing; a frame over 16 MiB does.",
        ),
        works(
            "arch-client-rate",
            "HTTP rate limit by client: 2000 reads, 1000 writes a second",
            "`--rate-limit on`: [settings](../how-to/settings.md). Off by default.",
            Shell("corvo config", ("rate_limit",)),
        ),
    ),
)

MIRROR = Section(
    "SQLite mirror",
    (
        differs(
            "arch-mirror-modes", "synchronous by default, or asynchronous", "Always behind, usually by 100 ms at most."
        ),
        works("arch-mirror-jobs", "table `jobs`", "See corvo-schema.md below.", Table("jobs", "id queue state")),
        works("arch-mirror-errors", "table `job_errors`", "See below.", Table("job_errors", "job_id error")),
        not_yet("arch-mirror-usage", "tables `job_usage`, `job_iterations`", "AI", "They are there, empty."),
        works("arch-mirror-queues", "table `queues`", "See below.", Table("queues", "name paused")),
        works("arch-mirror-workers", "table `workers`", "See below.", Table("workers", "id hostname")),
        works("arch-mirror-batches", "table `batches`", "See below.", Table("batches", "id total")),
        works("arch-mirror-schedules", "table `schedules`", "See below.", Table("schedules", "id name cron")),
        not_yet(
            "arch-mirror-security",
            "tables `api_keys`, `namespaces`",
            "security",
            "They are there, empty.",
        ),
        works(
            "arch-fts",
            "FTS5 on jobs",
            "`GET /search/fulltext`.",
            get("/search/fulltext?q=wanderlust", {"results": [{"id": "$JOB"}]}),
            before=[enqueued("seed.fts", '{"t": "wanderlust"}')],
            fresh=["seed.fts"],
        ),
        works(
            "arch-rebuild",
            "`POST /api/v1/admin/rebuild-sqlite`",
            "Also as `/admin/rebuild-read-db`.",
            post("/admin/rebuild-sqlite?wait=true", "", {"rebuilt": True}),
        ),
    ),
)

SNAPSHOTS = Section(
    "Snapshot and restore",
    (
        differs("arch-snapshot", "checkpoint, `VACUUM INTO`, tar.gz", "The state in pieces with digests."),
        differs(
            "arch-restore",
            "bulk copy of keys and rows",
            "Built beside, put in place by a restart; read.db follows by itself.",
        ),
        differs("arch-snapshot-trigger", "every 4096 entries or minute", "When a follower needs it."),
    ),
)

SECTIONS = (STRUCTURE, WRITES, KEYS, SHARDS, STREAM, MIRROR, SNAPSHOTS)
