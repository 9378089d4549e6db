"""One example of everything whose bytes outlive a process: operations, queries, results, records, keys, messages."""

from typing import Any

from corvo import wire
from corvo.errors import Refused
from corvo.job import Job, JobError, Priority, Queue, Worker
from corvo.lifecycle import State
from corvo.ops.jobs.ack import Ack, AckItem
from corvo.ops.jobs.cancel import Cancel
from corvo.ops.jobs.enqueue import Enqueue, NewJob
from corvo.ops.jobs.fail import Fail, FailItem, Failure
from corvo.ops.jobs.fetch import Claimed, Fetch
from corvo.ops.jobs.heartbeat import Beat, Heartbeat, Pulse
from corvo.ops.upkeep.name_node import NameNode
from corvo.ops.upkeep.promote import Promote
from corvo.ops.upkeep.reclaim import Reclaim
from corvo.queries.cluster import GetIndex, GetStatus, Histogram, ReplicaStatus, ShardStatus, TransferStatus
from corvo.queries.feed import Batch, Piece, Pull, Scan
from corvo.queries.job import Await, GetJob, JobRecord
from corvo.queries.members import AddNode, Members, MoveLeader, RemoveNode
from corvo.retry import Backoff
from corvo.state import keys
from corvo.state.tables import Applied

AT = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z
ID = "s03_job_18866b26d5a7000000000abcde"
ID_2 = "s03_job_18866b26d5a7000100000abcde"

JOB = Job(
    id=ID,
    queue="mail",
    state=State.ACTIVE,
    priority=Priority.HIGH,
    payload=b'{"to": "x"}',
    max_retries=5,
    backoff=Backoff.LINEAR,
    base_delay_ms=1_000,
    max_delay_ms=60_000,
    created_at=AT,
    position=AT + 1,
    due_at=AT + 2,
    attempt=2,
    started_at=AT + 3,
    completed_at=AT + 4,
    failed_at=AT + 5,
    lease_expires_at=AT + 6,
    lease_ms=30_000,
    lease_token=4,
    claim_id=2**62 + 1,
    settled_id=2**62 + 2,
    worker_id="w1",
    hostname="host",
    tags=b'{"a":"b"}',
    progress=b'{"p":1}',
    checkpoint=b'{"c":1}',
    result=b'{"r":1}',
    parent_id=ID_2,
)
JOB_ERROR = JobError(ID, 4, 2, "boom", "line 1", AT)
QUEUE = Queue("mail", AT, [1, 2, 3, 4, 5, 6, 7, 8], [AT, 0, AT + 1], 36, 3, 9)
WORKER = Worker("w1", "host", ["mail", "video"], AT, AT + 1)
_MEMBERS = Members(9, ["node-1", "node-2"], ["node-1"], ["node-4"])
_HISTOGRAM = Histogram([0.5, 1.0], [1, 2, 3], 4.5)

OPERATIONS: dict[str, Any] = {
    "enqueue": Enqueue(
        [
            NewJob(ID, "mail", b"{}"),
            NewJob(ID_2, "mail", b"[1]", Priority.CRITICAL, 5, Backoff.FIXED, 10, 20, AT, b'{"a":"b"}', b'{"c":1}', ID),
        ]
    ),
    "fetch": Fetch(["mail", "video"], "w1", "host", 2**62 + 1, 50, 30_000, 1_000, True),
    "ack": Ack(2**62 + 2, [AckItem(ID), AckItem(ID_2, 4, b'{"r":1}', b'{"c":1}')]),
    "fail": Fail(2**62 + 3, [FailItem(ID), FailItem(ID_2, 4, "boom", "line 1")]),
    "heartbeat": Heartbeat([Beat(ID), Beat(ID_2, 4, b'{"p":1}', b'{"c":1}')]),
    "cancel": Cancel(2**62 + 4, ID),
    "promote": Promote(),
    "reclaim": Reclaim(),
    "name_node": NameNode("node-2", "host:9400"),
}

QUERIES: dict[str, Any] = {
    "get_job": GetJob(ID),
    "await": Await(["mail", "video"], "w1", "host", 30_000),
    "get_status": GetStatus("node-2"),
    "get_index": GetIndex(),
    "pull": Pull(7, 1_000, 500),
    "scan": Scan(b"j|", 500),
    "add_node": AddNode("node-4", "host:9400"),
    "remove_node": RemoveNode("node-4"),
    "move_leader": MoveLeader("node-2"),
}

RESULTS: dict[str, Any] = {
    "enqueue": [State.PENDING, State.SCHEDULED],
    "fetch": [Claimed(ID, "mail", b"{}", 1, 5, 30_000, 4, b'{"c":1}', b'{"a":"b"}')],
    "ack": [None, Refused("LEASE_LOST", "late")],
    "fail": [Failure(State.RETRYING, 2, AT), Failure(State.DEAD, 0, 0), Refused("LEASE_LOST", "late", 5)],
    "heartbeat": [Pulse.OK, Pulse.CANCEL, Pulse.LEASE_LOST],
    "cancel": True,
    "promote": 3,
    "reclaim": 4,
    "name_node": True,
    "get_job": JobRecord(JOB, [JOB_ERROR]),
    "await": True,
    "get_status": ShardStatus(
        shard=3,
        node_id="node-1",
        role="leader",
        leader="node-1",
        term=2,
        commit_index=10,
        applied_index=9,
        log_first_index=1,
        log_last_index=11,
        state_hash="00ff",
        fsync=True,
        uptime_s=1.5,
        operations_total=12,
        entries_total=13,
        overloads_total=14,
        calls_waiting=15,
        fetches_parked=16,
        pulls_parked=17,
        leases=18,
        queues=19,
        mirror_cursor=20,
        batch_size=_HISTOGRAM,
        queue_time_s=_HISTOGRAM,
        apply_time_s=_HISTOGRAM,
        sync_time_s=_HISTOGRAM,
        memory_bytes=21,
        turns_total=22,
        members=_MEMBERS,
        replicas=[ReplicaStatus("node-2", 9, "replicate", False, True, 1.5)],
        transfers=[TransferStatus("node-4", True, 7, 8, 9)],
        log_bytes=23,
        elections_total=24,
        nodes={"node-1": "host:9400"},
        refused_total=25,
    ),
    "get_index": 9,
    "pull": Batch(9, [(b"j|a", b"1"), (b"j|b", None)], True, [WORKER]),
    "scan": Piece(9, [(b"j|a", b"1")], b"j|b"),
    "add_node": _MEMBERS,
    "remove_node": _MEMBERS,
    "move_leader": _MEMBERS,
}

RECORDS: dict[str, Any] = {
    "job": JOB,
    "job_error": JOB_ERROR,
    "queue": QUEUE,
    "worker": WORKER,
    "applied": Applied(9, 2, AT, AT + 1, bytes(range(16))),
}

KEYS: dict[str, bytes] = {
    "job": keys.job(ID),
    "job_error": keys.job_error(ID, 4),
    "pending_critical": keys.pending("mail", Priority.CRITICAL, AT, ID),
    "pending_high": keys.pending("mail", Priority.HIGH, AT, ID),
    "pending_normal": keys.pending("mail", Priority.NORMAL, AT, ID),
    "active": keys.active("mail", ID),
    "active_value": keys.pack_lease(AT, 2**62 + 1),
    "scheduled": keys.scheduled("mail", AT, ID),
    "retrying": keys.retrying("mail", AT, ID),
    "due": keys.due(AT, ID),
    "queue": keys.queue("mail"),
    "worker": keys.worker("w1"),
    "log_entry": keys.log_entry(258),
    "feed_record": keys.feed_record(258),
    "applied": keys.APPLIED,
    "log_meta": keys.LOG_META,
    "identity": keys.IDENTITY,
    "hard_state": keys.HARD_STATE,
    "membership": keys.MEMBERSHIP,
    "incarnation": keys.INCARNATION,
    "feed_floor": keys.FEED_FLOOR,
}

WIRE: dict[str, bytes] = {
    "calls": wire.encode_calls([wire.Call(1, 5_000, wire.encode(OPERATIONS["cancel"])), wire.Call(2, 0, b"")]),
    "replies": wire.encode_replies([wire.reply_to(1, True), wire.reply_to(2, Refused("OVERLOADED", "later", 250))]),
    "entry": wire.encode(wire.Entry(AT, [wire.encode(OPERATIONS["cancel"]), wire.encode(OPERATIONS["promote"])])),
    "refused": wire.encode(Refused("OVERLOADED", "later", 250)),
}
