"""One replica of one shard, a turn at a time: no sockets, no sleeping, no clock of its own.

A turn takes in everything that has arrived and brings it as far as it will go:

    messages of other replicas → calls → one entry for all that waits → Raft → one batch to disk → apply → replies

`_parts` is that list. Each part does its work in `turn` and says in `next_ns` when it needs the next one.

The batch holds log and hard state, and now and then the changes of everything applied since, with the marker of what
was applied (`storage/write_batcher.py`). So a crash between any two lines loses either all of it, and the log repeats
it, or nothing.
"""

from collections.abc import Callable
from itertools import groupby
from operator import attrgetter
from time import perf_counter

from corvo.engine import apply_entry
from corvo.model.limits import CALLS_PER_MESSAGE_MAX, ENTRY_BYTES_MAX
from corvo.ops import decode_operation
from corvo.ops.jobs.fetch import Fetch
from corvo.queries.cluster import ShardStatus
from corvo.state import keys
from corvo.state.tables import Tables
from corvo.wire import Entry, encode, operations_of
from shards import raft
from shards.courier.deliveries import Courier
from shards.courier.links import Deliverer, NoDeliverer
from shards.errors import Distrusted, Replaced
from shards.feed import Feed
from shards.group.call_router import CallRouter
from shards.group.config import GroupConfig
from shards.group.forwarding import parse_foreign
from shards.group.members import MemberUpkeep
from shards.group.raft_driver import RaftDriver
from shards.group.state_streams import StateStreams
from shards.intake.admission import Admission, Proposed
from shards.intake.callers import Callers
from shards.intake.presence import Presence
from shards.intake.queries import Queries
from shards.intake.refusals import BEHIND, LOST, NO_LEADER
from shards.intake.waiters import PendingCall
from shards.job_metrics import count_jobs
from shards.metrics import ShardMetrics
from shards.readiness import Readiness
from shards.status import status_of
from shards.storage.leveldb import Disk
from shards.storage.raft_log import RaftLog
from shards.storage.write_batcher import WriteBatch, WriteBatcher
from shards.turn import TurnList, TurnStep
from shards.upkeep import DEFAULT_SETTINGS, UpkeepSettings, next_upkeep_ns, upkeep_due

WARM_JOBS = 256
WARM_AT_ONCE = 32  # a tenth of a millisecond or two: a call that arrives meanwhile waits no longer
REFUSED_PAUSE_NS = 10_000_000
KEEP_UP_EVERY_NS = 50_000_000


class Replica:
    def __init__(
        self,
        shard: int,
        node_id: str,
        disk: Disk,
        callers: Callers,
        clock_ns: Callable[[], int],
        monotonic_ns: Callable[[], int],
        seed: int,
        is_synced: bool = True,
        group_config: GroupConfig | None = None,
        shard_count: int = 1,
        deliverer: Deliverer = NoDeliverer(),
        upkeep: UpkeepSettings = DEFAULT_SETTINGS,
    ) -> None:
        group_config = group_config or GroupConfig((node_id,))
        self.shard = shard
        self.node_id = node_id
        self._disk = disk
        self._callers = callers
        self._links = group_config.links
        self._snapshots = group_config.snapshots
        self._write_beside = group_config.writing
        self._deliverer = deliverer
        self._clock_ns = clock_ns
        self._monotonic_ns = monotonic_ns
        self._is_synced = is_synced
        self._started_ns = monotonic_ns()
        self.metrics = ShardMetrics()
        self._upkeep_settings = upkeep
        self.tables = Tables(disk, shard, shard_count)
        self.courier = Courier(self.tables.errands)
        self._log = RaftLog(disk)
        self.feed = Feed(disk, self.tables.applied.index)
        self.presence = Presence(clock_ns)
        self.admission = Admission(self.tables, self.presence, self._is_there)
        self._proposed = self.admission.proposed
        self.raft = core = raft.Raft(
            node_id,
            self._log.next_incarnation(),
            self._log.restored(self.tables.applied.index, raft.Membership(0, group_config.founders)),
            self._log,
            group_config.options,
            seed,
            monotonic_ns(),
        )
        self._router = CallRouter(group_config, core, self.admission, self._is_there)
        has_forgotten = disk.get(keys.FORGETFUL) is not None
        self.members = MemberUpkeep(group_config, shard, core, self.admission, self.tables, has_forgotten)
        self._streams = StateStreams(core, self._snapshots)
        self._raft_driver = RaftDriver(core, self._links, self._router, self.members, self._streams)
        self._batcher = WriteBatcher(self._log, self.tables, core, self.feed.take_part)
        self._queries = Queries(
            self.admission,
            self.tables,
            self.feed,
            self.presence,
            core,
            self._batcher,
            self.status,
            self._router.forward_to,
            self.members.change_members,
            monotonic_ns,
        )
        self._readiness = Readiness(core, self.members, self._snapshots, self._started_ns)
        self._upkeep_not_before_ns = 0  # it was refused: not again at once
        self._upkeep_index = 0  # of the last entry that holds upkeep: until it is applied, the same would be due
        self._role = raft.RoleChange(raft.Role.FOLLOWER, core.term, None, 0)
        self._fetched_queue: str | None = None  # where the last fetch found jobs
        self._keep_up_at_ns = 0  # in a turn that takes long
        self._parts = TurnList(
            self._raft_driver,  # messages of other replicas
            self._streams,
            TurnStep(self._tick, core.deadline_ns),
            TurnStep(self._receive_deliveries, self.courier.next_ns),
            TurnStep(self._receive_calls, self._next_call_ns),
            self.admission,
            TurnStep(self._lead, self._next_lead_ns),
            self._queries,
            self.admission.event_waits,
            self._router,
            self.members,
            TurnStep(self._settle),
            TurnStep(self._flush_when_due, self._batcher.next_ns),
            TurnStep(self._reply),
            TurnStep(self._send_deliveries),
            self._readiness,
        )

    # The turn

    def turn(self, now_ns: int) -> None:
        """Everything that can be done now."""
        self.metrics.turns += 1
        self._keep_up_at_ns = now_ns + KEEP_UP_EVERY_NS
        self._parts.turn(now_ns)

    def next_ns(self) -> int | None:
        return self._parts.next_ns()

    def _tick(self, now_ns: int) -> None:
        self.raft.tick(now_ns)
        if self.raft.leader_id is None:
            self._advance(now_ns)  # perhaps there is one after it; else calls are passed on before anything is written

    def _receive_deliveries(self, now_ns: int) -> None:
        self._deliverer.come_back(self.courier, now_ns)

    def _receive_calls(self, now_ns: int) -> None:
        admit = self._router.admit
        for peer, calls in self._callers.receive():
            for call in calls:
                admit(peer, call, now_ns)
            self._keep_up()
        self._advance(now_ns)

    def _next_call_ns(self) -> int | None:
        return 0 if self.admission.operations else None

    def _lead(self, now_ns: int) -> None:
        if not self.raft.is_leader:
            return
        named = list(map(encode, self.members.lead(now_ns)))
        self.admission.wake_again(now_ns)
        if not self._propose(now_ns, named):
            return
        self._advance(now_ns)
        if self.admission.operations:
            # A second round at once when the first one woke a fetch: it must not wait for the poll.
            self._propose(now_ns, [])
            self._advance(now_ns)

    def _next_lead_ns(self) -> int | None:
        if not self.raft.is_leader or self._upkeep_index > self.tables.applied.index:
            return None
        wall_ns = self._clock_ns()
        due_ns = self._monotonic_ns() + max(next_upkeep_ns(self.tables, wall_ns, self._upkeep_settings) - wall_ns, 0)
        return max(due_ns, self._upkeep_not_before_ns)

    def _settle(self, now_ns: int) -> None:
        """What the parts before asked of Raft."""
        self._advance(now_ns)
        self._streams.discard_unwanted()

    def _flush_when_due(self, now_ns: int) -> None:
        if self._batcher.is_due(now_ns):
            self.flush()

    def _reply(self, now_ns: int = 0) -> None:
        if self.admission.has_replies:
            for peer in self._callers.send(self._router.send_replies(self.admission.take_replies())):
                self.admission.waiters.forget_peer(peer)

    def _send_deliveries(self, now_ns: int) -> None:
        if self.raft.is_leader:
            self._deliverer.go(self.courier, now_ns)

    def _is_there(self, peer: bytes) -> bool:
        foreign = parse_foreign(peer)
        return self._callers.is_there(peer) if foreign is None else self._links.carries(foreign[0])

    @property
    def has_others(self) -> bool:
        """Whether other replicas count on hearing from this one."""
        membership = self.raft.membership
        return not (membership.is_alone(self.node_id) and not membership.learners)

    def warm(self) -> None:
        """With nothing else to do: read some of the jobs that the last fetch's queue will give next. From a deep queue
        they would otherwise be read one by one while a worker waits."""
        if self._fetched_queue is not None and self.tables.warm(self._fetched_queue, WARM_JOBS, WARM_AT_ONCE):
            self._fetched_queue = None

    @property
    def may_warm(self) -> bool:
        return self._fetched_queue is not None

    def close(self) -> None:
        if self._snapshots is not None:
            self._snapshots.close()
        self._disk.close()

    # Proposing

    def _propose(self, now_ns: int, due: list[bytes]) -> bool:
        """Everything that waits, as one entry. False when nothing does."""
        admission = self.admission
        batch = admission.take_batch(now_ns, ENTRY_BYTES_MAX, CALLS_PER_MESSAGE_MAX)
        admission.wake_with(batch)
        wall = self._clock_ns()
        # Upkeep goes first: what falls due now is older than what arrives now.
        if self._upkeep_index <= self.tables.applied.index:
            due = [
                *due,
                *map(encode, upkeep_due(self.tables, wall, self._upkeep_settings)),
                *map(encode, self.courier.confirmations()),
            ]
        if not batch and not due:
            return False
        payload = encode(Entry(wall, due + [waiting.raw for waiting in batch]))
        try:
            ((index, term),) = self.raft.propose([payload])
        except raft.RaftRefusal as refused:
            answer = BEHIND if isinstance(refused, raft.TooMuchUncommitted) else NO_LEADER
            self.admission.refuse(batch, answer)
            self._upkeep_not_before_ns = now_ns + REFUSED_PAUSE_NS
            return False
        self._proposed[index] = Proposed(term, wall, due, batch)
        if due:
            self._upkeep_index = index
        for arrived_ns, calls in groupby(batch, attrgetter("arrived_ns")):  # most came together
            self.metrics.queue_time.observe((now_ns - arrived_ns) / 1e9, sum(1 for _ in calls))
        self.metrics.batch_size.observe(len(batch) + len(due))
        return True

    # Raft and the disk

    def _advance(self, now_ns: int) -> None:
        """Serve Raft until it asks for nothing more."""
        while readies := self._raft_driver.take():
            states = [self._raft_driver.send_now(ready, now_ns) for ready in readies]  # the others write while we do
            must_sync = [self._gather(ready.persist) for ready in readies if ready.persist is not None]
            if any(must_sync):
                self._write(self._batcher.log_batch(now_ns))
            for ready, waiting in zip(readies, states, strict=True):
                self._conclude(ready, waiting, now_ns)

    def _gather(self, persist: raft.Persist) -> bool:
        """Add it to the next batch. Whether that must be written now."""
        if persist.snapshot is not None:
            assert self._snapshots is not None
            self.flush()  # what was promised before stays promised, whatever becomes of the state
            self._snapshots.install(persist.snapshot, persist.hard_state)
            raise Replaced(f"at entry {persist.snapshot.index}")
        self._batcher.add_to_log(self._log.persist_part(persist))
        if self.members.has_forgotten and self.node_id in self.raft.membership.learners:
            # A member again, of a group that counts no vote of ours. Written with the membership that says so.
            self._batcher.add_to_log({keys.FORGETFUL: None})
            self.members.has_forgotten = False
            self._batcher.state_changed(self._monotonic_ns())
        return persist.must_sync

    def _conclude(self, ready: raft.Ready, states: list[raft.InstallSnapshot], now_ns: int) -> None:
        """What its persist allows, now that it is on disk."""
        core = self.raft
        if ready.persist is not None:
            for message in ready.send_after:
                self._raft_driver.send(message, now_ns)
            core.persisted(ready.persist.token)
        for state in states:
            self.flush()  # what is sent is what the disk holds, with the membership that belongs to it
            self._raft_driver.send(state, now_ns)
        for entry in ready.apply:
            self._apply(entry)
            self._keep_up()
        if ready.apply:
            core.applied(ready.apply[-1].index, self.tables.applied.hash)
        for context, _ in ready.reads:
            self._queries.answer_reads(context)
        for context in ready.reads_refused:
            self.admission.refuse(context, NO_LEADER)
        if ready.role is not None:
            self._change_role(ready.role, now_ns)
        if ready.is_rolled_back:
            raise Distrusted("the others know a later incarnation of this replica: its disk went back in time")
        for divergence in ready.diverged:
            if divergence.peer == core.leader_id:  # the leader's state counts: ours is wrong
                raise Distrusted(f"its state differs from the leader's at entry {divergence.index}")

    def _keep_up(self) -> None:
        """On a machine that is short of processors a turn may take long; the others must not take us for dead."""
        now_ns = self._monotonic_ns()
        if now_ns >= self._keep_up_at_ns:
            self._keep_up_at_ns = now_ns + KEEP_UP_EVERY_NS
            self._raft_driver.keep_up(now_ns)

    def _change_role(self, now: raft.RoleChange, now_ns: int) -> None:
        before, self._role = self._role, now
        if now.term != before.term:
            self.metrics.elections += 1
            self.presence.forget_asked(now_ns)
        if now.role is not raft.Role.LEADER:
            for proposed in self._proposed.values():
                self.admission.refuse(proposed.batch, LOST)
            self._proposed.clear()
            self._upkeep_index = 0
            self.courier.rest()
            self.admission.refuse_all(NO_LEADER)
        if (now.leader_id, now.term) != (before.leader_id, before.term):
            self._router.lose_leader()
        self.members.change_role(before, now, now_ns)

    def flush(self) -> None:
        """Bring to disk what is gathered and what is applied, in one batch."""
        self._write(self._batcher.whole_batch())

    def _write(self, batch: WriteBatch) -> None:
        """A write may take long. What is answered or passed on already is sent before it."""
        self._router.flush()
        self._reply()
        started = perf_counter()
        if self.has_others:
            self._write_beside(
                lambda: self._disk.write(*batch.parts), lambda: self._raft_driver.keep_up(self._monotonic_ns())
            )
        else:
            self._disk.write(*batch.parts)
        self.metrics.sync_time.observe(perf_counter() - started)
        self._batcher.written(batch)

    def _apply(self, entry: raft.LogEntry) -> None:
        if entry.kind != raft.EntryKind.NORMAL:
            self.tables.begin(entry.index, entry.term, 0)
            self.feed.add(entry.index, {})
            self._batcher.state_changed(self._monotonic_ns())
            return
        started = perf_counter()
        batch: list[PendingCall] = []
        proposed = self._proposed.pop(entry.index, None)
        if proposed is not None and proposed.term == entry.term:
            wall, batch = proposed.now, proposed.batch
            operations = [*map(decode_operation, proposed.due), *(waiting.ask for waiting in batch)]
        else:
            if proposed is not None:  # another leader's entry stands where ours was to be
                self.admission.refuse(proposed.batch, LOST)
            wall, operations = operations_of(entry.payload)
        results, changes = apply_entry(self.tables, entry.index, entry.term, wall, operations)
        self.feed.add(entry.index, changes.records)
        self._batcher.state_changed(self._monotonic_ns())
        metrics = self.metrics
        metrics.entries += 1
        metrics.operations += len(operations)
        if self.raft.role is raft.Role.LEADER:
            count_jobs(metrics.jobs, self.tables)
        answers = results[len(results) - len(batch) :]
        self._answer_batch(batch, answers)
        if len(self.admission.waiters):
            # Also where a fetch left jobs behind because its answer was full: others may be waiting for them.
            fetched = {
                queue
                for waiting, answer in zip(batch, answers, strict=True)
                if isinstance(waiting.ask, Fetch) and answer
                for queue in waiting.ask.queues
            }
            self.admission.wake_pending(sorted(changes.woken | fetched))
        metrics.apply_time.observe(perf_counter() - started)

    # Answering

    def _answer_batch(self, batch: list[PendingCall], results: list[object]) -> None:
        admission = self.admission
        for waiting, result in zip(batch, results, strict=True):
            if isinstance(waiting.ask, Fetch):
                if not result:
                    admission.wait_or_answer(waiting, waiting.ask)
                    continue
                self._fetched_queue = waiting.ask.queues[0]
            admission.answer(waiting.peer, waiting.call_id, result)

    def status(self) -> ShardStatus:
        return status_of(
            shard=self.shard,
            core=self.raft,
            tables=self.tables,
            log=self._log,
            admission=self.admission,
            feed=self.feed,
            metrics=self.metrics,
            snapshots=self._snapshots,
            refused=self._links.refused,
            waits_for=self._readiness.waits_for(),
            is_synced=self._is_synced,
            uptime_s=(self._monotonic_ns() - self._started_ns) / 1e9,
            state_bytes=self._disk.estimated_bytes(keys.state_ranges()),
        )
