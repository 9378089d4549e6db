"""One example of everything whose bytes outlive a process: operations, queries, results, records, keys, messages."""

from typing import Any

from corvo import wire
from corvo.model.access_records import Quotas
from corvo.model.audit import AuditRecord, stamped, to_document
from corvo.model.audit_chain import link
from corvo.model.errors import Moved, Refused
from corvo.model.events import Event, EventKind, EventPage
from corvo.model.job import Controls, Job, JobError, Minute, Priority, Queue, Worker
from corvo.model.job_extras import Chain, ChainStep, IfLost, JobExtras, Outcome, UniqueUntil
from corvo.model.lifecycle import State
from corvo.model.quotas import Room, StoredAmounts
from corvo.model.reach import Reach
from corvo.model.retry import Backoff
from corvo.model.timestamps import to_rfc3339
from corvo.ops.audit.append_audit import AppendAudit
from corvo.ops.batches.add_to_batch import AddToBatch
from corvo.ops.batches.seal_batch import SealBatch
from corvo.ops.bulk.act_on_jobs import ActOnJobs
from corvo.ops.bulk.advance_bulk import AdvanceBulk
from corvo.ops.bulk.begin_bulk import BeginBulk
from corvo.ops.bulk.cancel_bulk import CancelBulk
from corvo.ops.bulk.claim_bulk import ClaimBulk
from corvo.ops.jobs.ack import Ack, AckItem
from corvo.ops.jobs.approve import Approve
from corvo.ops.jobs.cancel import Cancel
from corvo.ops.jobs.change_priority import ChangePriority
from corvo.ops.jobs.delete import Delete
from corvo.ops.jobs.enqueue import Enqueue
from corvo.ops.jobs.fail import Fail, FailItem, Failure
from corvo.ops.jobs.fetch import Claimed, Fetch
from corvo.ops.jobs.heartbeat import Beat, Heartbeat, Pulse
from corvo.ops.jobs.hold import Hold
from corvo.ops.jobs.move import Move
from corvo.ops.jobs.reject import Reject
from corvo.ops.jobs.requeue import Requeue
from corvo.ops.jobs.retry import Retry
from corvo.ops.queues.clear_queue import ClearQueue, Slice
from corvo.ops.queues.delete_queue import DeleteQueue, Looked
from corvo.ops.queues.drain_queue import DrainQueue
from corvo.ops.queues.pause_queue import PauseQueue
from corvo.ops.queues.resume_queue import ResumeQueue
from corvo.ops.queues.set_concurrency import SetConcurrency
from corvo.ops.queues.set_retention import SetRetention
from corvo.ops.queues.set_throttle import SetThrottle
from corvo.ops.schedules.create_schedule import CreateSchedule
from corvo.ops.schedules.delete_schedule import DeleteSchedule
from corvo.ops.schedules.fire_schedules import FireSchedules
from corvo.ops.schedules.pause_schedule import PauseSchedule
from corvo.ops.schedules.resume_schedule import ResumeSchedule
from corvo.ops.schedules.update_schedule import NewTerms, UpdateSchedule
from corvo.ops.upkeep.confirm import Confirm
from corvo.ops.upkeep.deliver import Deliver
from corvo.ops.upkeep.keep_audit import KeepAudit
from corvo.ops.upkeep.keep_ended import KeepEnded
from corvo.ops.upkeep.keep_workers import KeepWorkers
from corvo.ops.upkeep.name_node import NameNode
from corvo.ops.upkeep.promote import Promote
from corvo.ops.upkeep.reclaim import Reclaim
from corvo.ops.upkeep.ring import Ring
from corvo.queries import feed
from corvo.queries.arrivals import GetArrivals, Keyed
from corvo.queries.audit_logs import AuditPage, ReadAudit
from corvo.queries.batches import GetBatch
from corvo.queries.bulk import GetBulk, GetBulkJobs, ListBulks
from corvo.queries.cluster import GetIndex, GetStatus, Histogram, ReplicaStatus, ShardStatus, TransferStatus
from corvo.queries.events import EventsFound, Filters, GetEvents
from corvo.queries.feed import Pull, Scan, ScanPiece
from corvo.queries.job import Await, GetJob, JobRecord
from corvo.queries.jobs import FoundJob, GetJobs
from corvo.queries.members import AddNode, GroupMembers, MoveLeader, RemoveNode
from corvo.queries.queue import GetQueue, QueueRecord
from corvo.queries.queue_names import KnowsQueue
from corvo.queries.schedule_view import GetSchedule
from corvo.queries.schedules import ListSchedules
from corvo.queries.sight import FindOutside, FindQueues
from corvo.queries.stored import GetStored
from corvo.queries.unknown_jobs import FindUnknown
from corvo.queries.why import JobsAhead, Why, WhyView
from corvo.rules.batches import Batch, BatchSpec
from corvo.rules.bulk import Action, Bulk, BulkCounts, BulkFailure, Memo, Order, Status
from corvo.rules.errands.forget import Forget
from corvo.rules.errands.make_job import MakeJob
from corvo.rules.errands.make_member import MakeMember
from corvo.rules.errands.member_ended import MemberEnded
from corvo.rules.errands.move_in import MoveIn
from corvo.rules.errands.watch import Ended, Watch
from corvo.rules.job_creation import Existing, NewJob
from corvo.rules.schedules import Firing
from corvo.state import keys
from corvo.state.audit_log import AuditEnds, AuditEntry
from corvo.state.event_log import Told
from corvo.state.locks import Lock
from corvo.state.minutes import MINUTE_NS
from corvo.state.schedules import CatchUp, JobTemplate, Schedule
from corvo.state.tables import Applied
from tests.golden import access_examples

AT = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z
ID = "s03_job_18866b26d5a7000000000abcde"
ID_2 = "s03_job_18866b26d5a7000100000abcde"

BATCH_ID = "s02_batch_18866b26d5a7000200000abcde"
SCHEDULE_ID = "s01_cron_18866b26d5a7000300000abcde"

STEP = ChainStep("video", b'{"s":1}')
CHAIN = Chain(
    ID_2, 1, (ChainStep("mail", b"{}"), STEP), ChainStep("alarm", b'{"f":1}'), ChainStep("exit", b'{"e":1}'), True
)
EXTRAS = JobExtras(
    unique_key="only one",
    unique_period_ms=60_000,
    unique_until=UniqueUntil.START,
    idempotency_key="once",
    expire_after_ms=90_000,
    expire_at=AT + 7,
    jitter_permille=250,
    batch_id=BATCH_ID,
    chain=CHAIN,
    waits_for=(ID_2, ID),
    if_lost=IfLost.RUN,
    scheduled_at=AT + 8,
    is_watched=True,
    hold_reason="too dear",
    cancel_at=AT + 9,
    claimed_at=AT + 10,
    schedule_id=SCHEDULE_ID,
    is_told=True,
    asked_id=2**62 + 13,
    was_at=(2, 0),
    asked_before=(2**62 + 12, 2**62 + 11),
)
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
    extras=EXTRAS,
)
JOB_ERROR = JobError(ID, 4, 2, "boom", "line 1", AT, "w1", AT - 1, True, "mail")
CONTROLS = Controls(True, True, 5, 100, 60_000, (1_000, 2_000, 3_000))
BEGAN = (AT // MINUTE_NS, 35, 2, 7, 4)
CLEARED = (2**62 + 5, 12, AT)
QUEUE = Queue("mail", AT, [1, 2, 3, 4, 5, 6, 7, 8], [AT, 0, AT + 1], 36, 3, 9, CONTROLS, CLEARED, 5, BEGAN, ID, 4096)
MINUTE = Minute("mail", AT // MINUTE_NS, 4, 3, 2, 1)
WORKER = Worker("w1", "host", ["mail", "video"], AT, AT + 1, 8, "1.2.3")
BATCH = Batch(
    BATCH_ID, AT, STEP, ChainStep("well"), ChainStep("ill"), "an album", True, 9, [4, 3, 2, 1], AT + 1, ("mail",)
)
TERMS = JobTemplate(
    queue="mail",
    cron="*/5 * * * *",
    timezone="Europe/Berlin",
    payload=b'{"to": "x"}',
    priority=Priority.HIGH,
    max_retries=5,
    tags=b'{"a":"b"}',
    unique_key="only one",
    unique_period_ms=60_000,
    catch_up=CatchUp.ALL,
    catch_up_max=7,
)
SCHEDULE = Schedule(SCHEDULE_ID, "nightly", TERMS, AT, AT + 1, AT + 2, AT + 3, 4, True, AT + 5, AT + 6, 7)
EVENT = Event(EventKind.FAILED, ID, "mail", b'{"error":"boom"}')
BULK_ID = "bulk_18866b26d5a7000400000abcde"
REACH = Reach("acme", ("m*",))
ORDER = Order(
    Action.MOVE, "video", Priority.HIGH, "too dear", 5_000, "mail", (State.DEAD, State.HELD), ("m*",), True, True
)
TALLY = BulkCounts(7, {"WRONG_STATE": 2}, [BulkFailure(ID_2, "WRONG_STATE", "not now")])
BULK = Bulk(
    id=BULK_ID,
    order=ORDER,
    created_at=AT,
    filter=b'{"queue":"mail"}',
    total=12,
    total_is_exact=True,
    status=Status.RUNNING,
    node_id="node-1",
    gateway=2**62 + 14,
    claim=2**62 + 15,
    lease_ends_at=AT + 1,
    step=3,
    slice=[ID, ID_2],
    cursor="behind",
    is_last=True,
    tally=TALLY,
    started_at=AT + 2,
    claimed_at=AT + 3,
    claimed_processed=4,
    updated_at=AT + 5,
    finished_at=AT + 6,
    is_cancelling=True,
    failure="no search",
)
_SPEC = BatchSpec(STEP, ChainStep("well"), ChainStep("ill"), "an album")
_WITH_EXTRAS = NewJob(ID_2, "mail", b"{}", extras=EXTRAS)
_MEMBERS = GroupMembers(9, ["node-1", "node-2"], ["node-1"], ["node-4"])
_HISTOGRAM = Histogram([0.5, 1.0], [1, 2, 3], 4.5)

AUDIT_INTENT = to_document(
    AuditRecord(
        kind="intent",
        intent=5,
        namespace="acme",
        principal="ada@example.org",
        principal_kind="person",
        role="admin,auditor",
        key="0123456789ab",
        address="192.0.2.1",
        request_id="r-1",
        method="POST",
        path="/api/v1/queues/mail/concurrency",
        route="set_concurrency",
        query="confirm=true",
        target={"queue": "mail"},
        change={"max": 5},
        before={"max_concurrency": None},
        after={"max_concurrency": 5},
        made={"id": ID},
        status=200,
        code="FORBIDDEN",
        duration_ms=1.5,
        suppressed=3,
    )
)
_AUDIT_DOCUMENT = stamped(7, to_rfc3339(AT), AUDIT_INTENT)
AUDIT_ENTRY = AuditEntry(7, AT, 2**62 + 16, link(bytes(range(32)), _AUDIT_DOCUMENT), _AUDIT_DOCUMENT)

OPERATIONS: dict[str, Any] = {
    "enqueue": Enqueue(
        [
            NewJob(ID, "mail", b"{}"),
            NewJob(ID_2, "mail", b"[1]", Priority.CRITICAL, 5, Backoff.FIXED, 10, 20, AT, b'{"a":"b"}', b'{"c":1}', ID),
            _WITH_EXTRAS,
        ],
        Room(Quotas(10, 4096, 2), 3, 512, 1),
    ),
    "fetch": Fetch(
        ["mail", "video"],
        "w1",
        "host",
        2**62 + 1,
        50,
        30_000,
        1_000,
        True,
        [3, 1],
        True,
        8,
        "1.2.3",
        True,
        ["mail", "video", "a"],
    ),
    "ack": Ack(2**62 + 2, [AckItem(ID), AckItem(ID_2, 4, b'{"r":1}', b'{"c":1}', True)]),
    "fail": Fail(2**62 + 3, [FailItem(ID), FailItem(ID_2, 4, "boom", "line 1", True, 500, 600)]),
    "heartbeat": Heartbeat([Beat(ID), Beat(ID_2, 4, b'{"p":1}', b'{"c":1}')]),
    "cancel": Cancel(2**62 + 4, ID, 5_000),
    "retry": Retry(2**62 + 5, ID),
    "requeue": Requeue(2**62 + 6, ID),
    "hold": Hold(2**62 + 7, ID, "too dear"),
    "approve": Approve(2**62 + 8, ID),
    "reject": Reject(2**62 + 9, ID, "too dear"),
    "delete": Delete(ID),
    "change_priority": ChangePriority(ID, Priority.HIGH, 2**62 + 14),
    "move": Move(2**62 + 10, ID, "video"),
    "act_on_jobs": ActOnJobs(BULK_ID, 3, ORDER, [ID, ID_2], 60_000),
    "begin_bulk": BeginBulk(BULK_ID, ORDER, b'{"queue":"mail"}', [ID], 12, True),
    "claim_bulk": ClaimBulk("node-1", 2**62 + 14, 2**62 + 15, 30_000),
    "advance_bulk": AdvanceBulk(BULK_ID, 2**62 + 15, 3, TALLY, [ID, ID_2], "behind", True, 30_000, "no search"),
    "cancel_bulk": CancelBulk(BULK_ID),
    "add_to_batch": AddToBatch(
        2**62 + 11, BATCH_ID, BatchSpec(STEP, ChainStep("well"), ChainStep("ill"), "album"), True, [_WITH_EXTRAS]
    ),
    "seal_batch": SealBatch(BATCH_ID),
    "create_schedule": CreateSchedule(SCHEDULE_ID, "nightly", TERMS),
    "update_schedule": UpdateSchedule(
        "nightly",
        NewTerms("mail", "@daily", "UTC", b"{}", Priority.NORMAL, 3, b'{"a":"b"}', "k", 1_000, CatchUp.LAST, 9),
    ),
    **access_examples.OPERATIONS,
    "delete_schedule": DeleteSchedule(SCHEDULE_ID),
    "pause_schedule": PauseSchedule("nightly"),
    "resume_schedule": ResumeSchedule("nightly"),
    "fire_schedules": FireSchedules([Firing(SCHEDULE_ID, 4, [AT, AT + 1], AT + 2, AT + 3)]),
    "pause_queue": PauseQueue("mail"),
    "resume_queue": ResumeQueue("mail"),
    "drain_queue": DrainQueue("mail"),
    "clear_queue": ClearQueue(2**62 + 12, "mail", AT, 3, b"start", 12),
    "delete_queue": DeleteQueue("mail", True, AT, b"start"),
    "set_concurrency": SetConcurrency("mail", 5),
    "set_throttle": SetThrottle("mail", 100, 60_000),
    "set_retention": SetRetention("mail", (1_000, 2_000, 3_000)),
    "deliver": Deliver(3, 258, [wire.encode(Watch(ID, ID_2)), wire.encode(MemberEnded(BATCH_ID, Outcome.DEAD))]),
    "confirm": Confirm(3, 259),
    "ring": Ring(),
    "promote": Promote(),
    "reclaim": Reclaim(),
    "name_node": NameNode("node-2", "host:9400"),
    "keep_ended": KeepEnded(86_400_000),
    "keep_workers": KeepWorkers(900_000),
    "keep_audit": KeepAudit(86_400_000, 50_000),
    "append_audit": AppendAudit(2**62 + 16, AUDIT_INTENT),
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
    "get_batch": GetBatch(BATCH_ID),
    "get_arrivals": GetArrivals(3, 258, [Keyed(ID, "mail", "only one", "once")]),
    "find_unknown": FindUnknown([ID, ID_2]),
    "find_queues": FindQueues([ID, ID_2]),
    "get_stored": GetStored(["acme", "default"]),
    "find_outside": FindOutside(Reach("acme", ("mail.*",)), [BATCH_ID], [SCHEDULE_ID], [BULK_ID]),
    "get_queue": GetQueue("mail", AT),
    "knows_queue": KnowsQueue("mail"),
    "get_events": GetEvents(258, 100, 1_000, Filters(("mail",), (ID,), (EventKind.FAILED, EventKind.DEAD), REACH)),
    "why": Why(ID),
    "read_audit": ReadAudit(6, 500, 1_048_576),
    "get_schedule": GetSchedule("nightly"),
    **access_examples.QUERIES,
    "list_schedules": ListSchedules(REACH),
    "get_jobs": GetJobs([ID, ID_2]),
    "get_bulk": GetBulk(BULK_ID),
    "list_bulks": ListBulks(100, REACH),
    "get_bulk_jobs": GetBulkJobs(BULK_ID, 500, 200),
}

RESULTS: dict[str, Any] = {
    "enqueue": [State.PENDING, State.SCHEDULED, Existing(ID)],
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
    "pull": feed.FeedBatch(9, [(b"j|a", b"1"), (b"j|b", None)], True, [WORKER]),
    "scan": ScanPiece(9, [(b"j|a", b"1")], b"j|b"),
    "add_node": _MEMBERS,
    "remove_node": _MEMBERS,
    "move_leader": _MEMBERS,
    "retry": None,
    "requeue": None,
    "hold": None,
    "approve": None,
    "reject": None,
    "delete": None,
    "change_priority": None,
    "move": None,
    "add_to_batch": {1: 258, 3: 259},
    "seal_batch": None,
    "create_schedule": SCHEDULE,
    "update_schedule": SCHEDULE,
    "delete_schedule": True,
    "pause_schedule": SCHEDULE,
    "resume_schedule": SCHEDULE,
    "fire_schedules": 5,
    "pause_queue": None,
    "resume_queue": None,
    "drain_queue": 6,
    "clear_queue": Slice(12, AT, 3, b"start"),
    "delete_queue": Looked(AT, b"start"),
    "set_concurrency": None,
    "set_throttle": None,
    "set_retention": None,
    "deliver": 259,
    "confirm": 2,
    "ring": 7,
    "get_batch": BATCH,
    "get_arrivals": [ID],
    "find_unknown": [ID_2],
    "get_stored": [StoredAmounts(3, 4096, 2), StoredAmounts()],
    "find_queues": ["mail", Refused("JOB_NOT_FOUND", "no job has the id")],
    "find_outside": [BULK_ID],
    "get_queue": QueueRecord(QUEUE, AT, 3, AT + 1),
    "knows_queue": AT,
    "get_events": EventsFound(259, [Told(258, AT, EVENT)], 3, True),
    "why": WhyView(
        ID, "mail", "pending", "JOBS_AHEAD", "2 jobs are ahead of it", jobs_ahead=JobsAhead(2, True, {"high": 2})
    ),
    "append_audit": 7,
    "keep_audit": True,
    "read_audit": AuditPage(6, bytes(range(32)), 7, AUDIT_ENTRY.hash, [AUDIT_ENTRY]),
    "get_schedule": SCHEDULE,
    "list_schedules": [SCHEDULE],
    **access_examples.RESULTS,
    "act_on_jobs": [None, Refused("WRONG_STATE", "not now")],
    "begin_bulk": None,
    "claim_bulk": BULK,
    "advance_bulk": Status.CANCELLED,
    "cancel_bulk": BULK,
    "get_jobs": [FoundJob(JobRecord(JOB, [JOB_ERROR])), Refused("JOB_NOT_FOUND", "who?")],
    "get_bulk": BULK,
    "list_bulks": [BULK],
    "get_bulk_jobs": [ID, ID_2],
}

RECORDS: dict[str, Any] = {
    "job": JOB,
    "job_error": JOB_ERROR,
    "queue": QUEUE,
    "minute": MINUTE,
    "worker": WORKER,
    "batch": BATCH,
    "schedule": SCHEDULE,
    **access_examples.RECORDS,
    "bulk": BULK,
    "bulk_memo": Memo(3, [ID, ID_2], AT, 60_000),
    "page": EventPage(AT, [EVENT]),
    "lock": Lock(ID, AT),
    "applied": Applied(9, 2, AT, AT + 1, bytes(range(16))),
    "audit_entry": AUDIT_ENTRY,
    "audit_ends": AuditEnds(7, AUDIT_ENTRY.hash, 6, bytes(range(32))),
}

ERRANDS: dict[str, Any] = {
    "watch": Watch(ID, ID_2),
    "ended": Ended(ID, Outcome.DELETED, ID_2),
    "make_job": MakeJob(_WITH_EXTRAS),
    "member_ended": MemberEnded(BATCH_ID, Outcome.CANCELLED),
    "move_in": MoveIn(JOB, [JOB_ERROR], [ID_2], b'{"from":"video"}'),
    "make_member": MakeMember(_WITH_EXTRAS),
    "forget": Forget(ID),
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
    "due": keys.due(keys.DUE, AT, ID),
    "alarm": keys.due(keys.ALARMS, AT, "e" + ID),
    "unique": keys.unique("mail", "only one"),
    "idempotent": keys.idempotent("mail", "once"),
    "watcher": keys.watcher(ID, ID_2),
    "forwarded": keys.forwarded(ID),
    "forwarded_value": keys.pack_forwarding(3, 258),
    "batch": keys.batch(BATCH_ID),
    "batch_ask": keys.batch_ask(BATCH_ID, 2**62 + 11),
    "schedule": keys.schedule(SCHEDULE_ID),
    **access_examples.KEYS,
    "bulk": keys.bulk(BULK_ID),
    "bulk_ended": keys.bulk_ended(BULK_ID),
    "bulk_ids": keys.bulk_ids(BULK_ID),
    "bulk_memo": keys.bulk_memo(BULK_ID),
    "claims_at": keys.claims_at("mail", AT),
    "audit": keys.audit(258),
    "audit_ends": keys.AUDIT_ENDS,
    "audit_kept": keys.AUDIT_KEPT,
    "audit_kept_value": keys.pack_audit_kept(86_400_000, 50_000),
    "event": keys.event(258),
    "outbox": keys.outbox(3, 258),
    "outbox_last": keys.outbox_last(3),
    "inbox_last": keys.inbox_last(3),
    "node": keys.node("node-2"),
    "default_retention": keys.DEFAULT_RETENTION,
    "worker_timeout": keys.WORKER_TIMEOUT,
    "queue": keys.queue("mail"),
    "minute": keys.minute("mail", AT // MINUTE_NS),
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
    "refused": wire.encode(Refused("SHARD_UNAVAILABLE", "later", 250, Moved(3, True))),
}
