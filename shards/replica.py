"""One replica of one shard, a turn at a time: no sockets, no sleeping, no clock of its own.

A turn takes in everything that has arrived and brings it as far as it will go:

    letters of other replicas → admit → one entry for all that waits → Raft → one batch to disk → apply → replies

The batch holds log and hard state, and now and then the changes of everything applied since, with the marker of what
was applied (`batches.py`): so a crash between any two lines loses either all of it, and the log repeats it, or nothing.
"""

from collections.abc import Callable, Iterable
from itertools import groupby
from operator import attrgetter
from time import perf_counter

from corvo.endpoint import Operation
from corvo.engine import apply_entry
from corvo.model.errors import Refused
from corvo.model.limits import CALLS_PER_MESSAGE_MAX, ENTRY_BYTES_MAX
from corvo.ops import decode_operation
from corvo.ops.jobs.fetch import Fetch
from corvo.queries.cluster import ShardStatus
from corvo.state import keys
from corvo.state.tables import Tables
from corvo.wire import Call, Entry, Reply, encode, operations_of
from shards import raft
from shards.courier.deliveries import Courier
from shards.errors import Distrusted, Replaced
from shards.feed import Feed
from shards.group.config import GroupConfig
from shards.group.members import LOST, NO_LEADER, Members
from shards.group.messages import PeerMessage
from shards.group.raft_driver import RaftDriver
from shards.intake.admission import AWAIT_RECHECK_NS, Admission, Proposed
from shards.intake.presence import Presence
from shards.intake.queries import Queries
from shards.intake.waiters import PendingCall
from shards.metrics import ShardMetrics
from shards.status import status_of
from shards.storage.leveldb import Disk
from shards.storage.raft_log import RaftLog
from shards.storage.write_batcher import WriteBatcher
from shards.upkeep import next_upkeep_ns, upkeep_due

WARM_JOBS = 256
WARM_AT_ONCE = 32  # a tenth of a millisecond or two: whoever asks meanwhile waits no longer
REFUSED_PAUSE_NS = 10_000_000
TALK_EVERY_NS = 50_000_000

Replies = list[tuple[bytes, list[Reply]]]  # for peers of the door, a message each

_CROWDED = Refused("OVERLOADED", "the other replicas are behind; send the request again", 250)


class Replica:
    def __init__(
        self,
        shard: int,
        node_id: str,
        disk: Disk,
        clock_ns: Callable[[], int],
        monotonic_ns: Callable[[], int],
        seed: int,
        is_synced: bool = True,
        group_config: GroupConfig | None = None,
        shard_count: int = 1,
    ) -> None:
        self.shard = shard
        self.node_id = node_id
        self._disk = disk
        self._clock_ns = clock_ns
        self._monotonic_ns = monotonic_ns
        self._is_synced = is_synced
        self._started_ns = monotonic_ns()
        self.tables = Tables(disk, shard, shard_count)
        self.courier = Courier(self.tables.errands)
        self._log = RaftLog(disk)
        self.feed = Feed(disk, self.tables.applied.index)
        self.presence = Presence(clock_ns)
        self.admission = Admission(self.tables, self.presence)
        self.metrics = ShardMetrics()
        group_config = group_config or GroupConfig((node_id,))
        self._snapshots = group_config.snapshots
        self.raft = raft.Raft(
            node_id,
            self._log.next_incarnation(),
            self._log.restored(self.tables.applied.index, raft.Membership(0, group_config.founders)),
            self._log,
            group_config.options,
            seed,
            monotonic_ns(),
        )
        self.members = Members(
            group_config, shard, self.raft, self.admission, self.tables, disk.get(keys.FORGETFUL) is not None
        )
        self._raft_driver = RaftDriver(self.raft, self.members, group_config.hear)
        self._batcher = WriteBatcher(
            disk,
            self._log,
            self.tables,
            self.feed,
            self.raft,
            self.metrics,
            self._carry_out,
        )
        self._queries = Queries(
            self.admission,
            self.tables,
            self.feed,
            self.presence,
            self.raft,
            self.members,
            self._batcher,
            self.status,
            monotonic_ns,
        )
        self._writing = group_config.writing
        self.deliver: Callable[[Replies], None] | None = None  # sends replies in the middle of a turn
        self._proposed = self.admission.proposed
        self._upkeep_not_before_ns = 0  # it was refused: not again at once
        self._upkeep_index = 0  # of the last entry that holds upkeep: until it is applied, the same would be due
        self._term = self.raft.term
        self._fetched_queue: str | None = None  # where the last fetch found jobs
        self._talk_at_ns = 0  # with others, in a turn that takes long

    # The turn

    def turn(self, arrived: Iterable[tuple[bytes, list[Call]]], messages: Iterable[PeerMessage] = ()) -> Replies:
        """Everything that can be done now; the replies that are not delivered yet."""
        now_ns = self._monotonic_ns()
        admission, members = self.admission, self.members
        self.metrics.turns += 1
        self._talk_at_ns = now_ns + TALK_EVERY_NS
        self._raft_driver.receive_heard(now_ns)
        for posted in messages:
            members.receive(posted, now_ns)
        members.heed_streams(now_ns)
        self.raft.tick(now_ns)
        if self.raft.leader_id is None:
            self._advance(now_ns)  # perhaps there is one after it; else calls are passed on before anything is written
        for peer, calls in arrived:
            for call in calls:
                members.admit(peer, call, now_ns)
            self._keep_up()
        self._advance(now_ns)
        admission.end_waits(now_ns)
        if self.raft.is_leader:
            upkeep = members.lead(now_ns)
            # A second round at once when the first one woke somebody: a woken fetch must not wait for the poll.
            for _ in range(2):
                admission.wake_again(now_ns)
                if not self._propose(now_ns, upkeep):
                    break
                self._advance(now_ns)
                upkeep = []
        self._queries.take_up(now_ns)
        admission.event_waits.serve(now_ns)
        members.tend(now_ns, admission.is_there)
        self._advance(now_ns)  # what the queries, and the care for the members, asked of Raft
        members.discard_unwanted()
        if (due_ns := self._batcher.due_ns()) and now_ns >= due_ns:
            self.flush()
        return members.send_replies(admission.take_replies())

    def sleep_ns(self) -> int:
        """How long nothing need be done unless something arrives. At most an hour, so that arithmetic stays small."""
        now_ns = self._monotonic_ns()
        moments = [now_ns + 3_600_000_000_000]
        if self.admission.operations or self._raft_driver.has_more:
            return 0
        if due_ns := self._batcher.due_ns():
            moments.append(due_ns)
        if (ends := self.admission.waiters.next_end_ns()) is not None:
            moments.append(ends)
        if self.admission.told:
            moments.append(now_ns + AWAIT_RECHECK_NS)
        moments.extend(pull.wait_until_ns for pull in self.admission.pulls)
        if (looks := self.admission.event_waits.next_ns()) is not None:
            moments.append(looks)
        if (deadline := self.raft.deadline_ns()) is not None:
            moments.append(deadline)
        if (tends := self.members.next_ns()) is not None:
            moments.append(tends)
        if self.raft.is_leader:
            if self._upkeep_index <= self.tables.applied.index:
                wall = self._clock_ns()
                due_ns = now_ns + max(next_upkeep_ns(self.tables, wall) - wall, 0)
                moments.append(max(due_ns, self._upkeep_not_before_ns))
            if (ends := self.courier.next_ns()) is not None:
                moments.append(ends)
        return max(min(moments) - now_ns, 0)

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

    def _propose(self, now_ns: int, upkeep: list[Operation]) -> bool:
        """Everything that waits, as one entry. False when nothing does."""
        admission = self.admission
        batch = admission.take_batch(now_ns, ENTRY_BYTES_MAX, CALLS_PER_MESSAGE_MAX)
        admission.wake_with(batch)
        wall = self._clock_ns()
        # Upkeep goes first: what falls due now is older than what arrives now.
        due = [encode(operation) for operation in upkeep]
        if self._upkeep_index <= self.tables.applied.index:
            due += map(encode, upkeep_due(self.tables, wall))
            due += map(encode, self.courier.confirmations())
        if not batch and not due:
            return False
        payload = encode(Entry(wall, due + [waiting.raw for waiting in batch]))
        try:
            ((index, term),) = self.raft.propose([payload])
        except raft.RaftRefusal as refused:
            answer = _CROWDED if isinstance(refused, raft.TooMuchUncommitted) else NO_LEADER
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
                self._batcher.write_log(now_ns)
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
            # Taken in anew, by a group that counts no vote of ours. Known on disk with the membership that says so.
            self._batcher.add_to_log({keys.FORGETFUL: None})
            self.members.has_forgotten = False
            self._batcher.state_changed(self._monotonic_ns())
        return persist.must_sync

    def _conclude(self, ready: raft.Ready, states: list[raft.InstallSnapshot], now_ns: int) -> None:
        """What its persist allows, now that it is on disk."""
        core, members = self.raft, self.members
        if ready.persist is not None:
            for message in ready.send_after:
                members.post(message, now_ns)
            core.persisted(ready.persist.token)
        for state in states:
            self.flush()  # what is sent is what the disk holds, with the membership that belongs to it
            members.post(state, now_ns)
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
            raise Distrusted("the others have met a later life of this replica: its disk went back in time")
        for divergence in ready.diverged:
            if divergence.peer == core.leader_id:  # the leader's word counts: it is we who are wrong
                raise Distrusted(f"its state differs from the leader's at entry {divergence.index}")

    def _keep_up(self) -> None:
        """On a machine that is short of processors a turn may take long; the others must not think us dead."""
        now_ns = self._monotonic_ns()
        if now_ns >= self._talk_at_ns:
            self._talk_at_ns = now_ns + TALK_EVERY_NS
            self._raft_driver.go_on(now_ns)

    def _change_role(self, change: raft.RoleChange, now_ns: int) -> None:
        if change.term != self._term:
            self._term = change.term
            self.metrics.elections += 1
            self.presence.forget_asked(now_ns)
        if change.role is not raft.Role.LEADER:
            for proposed in self._proposed.values():
                self.admission.refuse(proposed.batch, LOST)
            self._proposed.clear()
            self._upkeep_index = 0
            self.courier.rest()
            self.admission.refuse_all(NO_LEADER)
        self.members.change_role(change, now_ns)

    def _carry_out(self, write: Callable[[], None]) -> None:
        """A write may take long. What is answered or passed on already is said before it, not after."""
        self.members.flush_forwarded()
        if self.deliver is not None and self.admission.has_replies:
            self.deliver(self.members.send_replies(self.admission.take_replies()))
        self._writing(write, lambda: self._raft_driver.go_on(self._monotonic_ns()))

    def flush(self) -> None:
        """Bring to disk what is gathered and what is applied, in one batch."""
        self._batcher.write_all()

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
            is_synced=self._is_synced,
            uptime_s=(self._monotonic_ns() - self._started_ns) / 1e9,
        )
