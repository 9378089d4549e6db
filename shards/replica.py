"""One replica of one shard, a turn at a time: no sockets, no sleeping, no clock of its own.

A turn takes in everything that has arrived and brings it as far as it will go:

    admit → one entry for all that waits → Raft → one batch to disk → apply → replies

The batch holds log, hard state, the changes of everything applied since the last batch and the marker of what was
applied, together (docs/explanation/storage.md): so a crash between any two lines loses either all of
it, and the log repeats it, or nothing. While there is traffic the applied state rides in the next entry's batch;
when traffic stops it is flushed a moment later.
"""

from collections.abc import Callable, Iterable
from time import perf_counter

from corvo.engine import apply_entry
from corvo.errors import Refused
from corvo.limits import CALLS_PER_MESSAGE_MAX, ENTRY_BYTES_MAX
from corvo.ops.jobs.fetch import Fetch
from corvo.queries.cluster import GetStatus, ShardStatus
from corvo.queries.feed import Pull, Scan
from corvo.queries.job import GetJob, JobRecord
from corvo.state.tables import Tables
from corvo.wire import Call, Entry, encode, operations_of
from shards import raft
from shards.door import AWAIT_RECHECK_NS, Door
from shards.feed import Feed
from shards.log_disk import LogDisk, Part
from shards.meters import Meters, resident_bytes
from shards.parking import Waiting
from shards.presence import Presence
from shards.storage import Disk
from shards.upkeep import next_upkeep_ns, upkeep_due

WARM_JOBS = 256
FLUSH_AFTER_NS = 50_000_000  # long enough that under light traffic the next entry's batch takes it along

_NO_LEADER = Refused("NOT_LEADER", "this shard has no leader at the moment; send the request again", 200)


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
    ) -> None:
        self.shard = shard
        self.node_id = node_id
        self._disk = disk
        self._clock_ns = clock_ns
        self._monotonic_ns = monotonic_ns
        self._is_synced = is_synced
        self._started_ns = monotonic_ns()
        self.tables = Tables(disk)
        self._log = LogDisk(disk)
        self.feed = Feed(disk, self.tables.applied.index)
        self.presence = Presence(clock_ns)
        self.door = Door(self.tables, self.presence)
        self.meters = Meters()
        self.raft = raft.Raft(
            node_id,
            self._log.next_incarnation(),
            self._log.restored(self.tables.applied.index, raft.Membership(0, (node_id,))),
            self._log,
            raft.Options(),
            seed,
            monotonic_ns(),
        )
        self._proposed: dict[int, tuple[int, list[Waiting]]] = {}  # index → term, calls in the order of the entry
        self._durable_index = self.tables.applied.index  # applied marker on disk
        self._fetched_queue: str | None = None  # where the last fetch found jobs
        self._lazy_part: Part = {}  # of the log, waiting for the next batch
        self._flush_at_ns = 0  # 0: nothing to flush

    # The turn

    def turn(self, arrived: Iterable[tuple[bytes, list[Call]]]) -> list[tuple[bytes, bytes]]:
        """Everything that can be done now; messages for peers of the door."""
        now_ns = self._monotonic_ns()
        door = self.door
        for peer, calls in arrived:
            for call in calls:
                door.admit(peer, call, now_ns)
        self.meters.turns += 1
        self.raft.tick(now_ns)
        door.end_waits(now_ns)
        self._advance()
        if self.raft.is_leader:
            # A second round at once when the first one woke somebody: a woken fetch must not wait for the poll.
            for _ in range(2):
                door.wake_again(now_ns)
                if not self._propose(now_ns):
                    break
                self._advance()
            self._answer_queries()
        else:
            door.refuse_all(_NO_LEADER)
        self._answer_pulls(now_ns)
        if self._flush_at_ns and now_ns >= self._flush_at_ns:
            self.flush()
        return door.take_replies()

    def sleep_ns(self) -> int:
        """How long nothing need be done unless something arrives. At most an hour, so that arithmetic stays small."""
        now_ns = self._monotonic_ns()
        moments = [now_ns + 3_600_000_000_000]
        if self.door.operations:
            return 0
        if self._flush_at_ns:
            moments.append(self._flush_at_ns)
        if (ends := self.door.parking.next_end_ns()) is not None:
            moments.append(ends)
        if self.door.told:
            moments.append(now_ns + AWAIT_RECHECK_NS)
        moments.extend(pull.wait_until_ns for pull in self.door.pulls)
        if (deadline := self.raft.deadline_ns()) is not None:
            moments.append(deadline)
        if self.raft.is_leader:
            wall = self._clock_ns()
            moments.append(now_ns + max(next_upkeep_ns(self.tables, wall) - wall, 0))
        return max(min(moments) - now_ns, 0)

    def warm(self) -> None:
        """With nothing else to do: read the jobs that the last fetch's queue will give next. From a deep queue they
        would otherwise be read one by one while a worker waits."""
        if self._fetched_queue is not None:
            self.tables.warm(self._fetched_queue, WARM_JOBS)
            self._fetched_queue = None

    @property
    def may_warm(self) -> bool:
        return self._fetched_queue is not None

    def flush(self) -> None:
        """Bring what is applied to disk now."""
        self._write()

    def close(self) -> None:
        self.flush()
        self._disk.close()

    # Proposing

    def _propose(self, now_ns: int) -> bool:
        """Everything that waits, as one entry. False when nothing does."""
        door = self.door
        batch = door.take_batch(now_ns, ENTRY_BYTES_MAX, CALLS_PER_MESSAGE_MAX)
        door.wake_with(batch)
        wall = self._clock_ns()
        raws = [waiting.raw for waiting in batch]
        # Upkeep goes first: what falls due now is older than what arrives now.
        due = upkeep_due(self.tables, wall)
        if not batch and not due:
            return False
        payload = encode(Entry(wall, [encode(operation) for operation in due] + raws))
        try:
            ((index, term),) = self.raft.propose([payload])
        except raft.Refused:
            for waiting in batch:
                door.answer(waiting.peer, waiting.call_id, _NO_LEADER)
            return False
        self._proposed[index] = (term, batch)
        for waiting in batch:
            self.meters.queue_time.observe((now_ns - waiting.arrived_ns) / 1e9)
        self.meters.batch_size.observe(len(batch) + len(due))
        return True

    # Raft and the disk

    def _advance(self) -> None:
        """Serve Raft until it asks for nothing more."""
        core = self.raft
        while (ready := core.ready()) is not None:
            persist = ready.persist
            if persist is not None:
                self._lazy_part.update(self._log.persist_part(persist))
                if persist.must_sync:
                    self._write()
                else:  # no promise depends on it: it rides in the next batch
                    self._flush_soon()
                core.persisted(persist.token)
            for entry in ready.apply:
                self._apply(entry)
            if ready.apply:
                core.applied(ready.apply[-1].index, self.tables.applied.hash)
            for context, _ in ready.reads:
                self._answer_reads(context)
            if ready.diverged or ready.is_rolled_back:
                raise AssertionError(
                    f"this replica cannot be trusted: {ready.diverged or 'its disk went back in time'}"
                )

    def _write(self) -> None:
        started = perf_counter()
        log_part, self._lazy_part = self._lazy_part, {}
        applied = self.tables.applied.index
        state_part = self.tables.take_writes()
        feed_part = self.feed.take_part()
        compact_part = self._log.compact_part(self._durable_index)
        self._disk.write(compact_part, log_part, state_part, feed_part)
        self._durable_index = applied
        self._flush_at_ns = 0
        if compact_part:
            self.raft.compacted(self._log.first_index)
        self.meters.sync_time.observe(perf_counter() - started)

    def _apply(self, entry: raft.Entry) -> None:
        if entry.kind != raft.EntryKind.NORMAL:
            self.tables.begin(entry.index, entry.term, 0)
            self.feed.add(entry.index, {})
            self._flush_soon()
            return
        started = perf_counter()
        term, batch = self._proposed.pop(entry.index, (0, []))
        wall, operations = operations_of(entry.payload)
        results, changes = apply_entry(self.tables, entry.index, entry.term, wall, operations)
        self.feed.add(entry.index, changes.records)
        self._flush_soon()
        meters = self.meters
        meters.entries += 1
        meters.operations += len(operations)
        answers = results[len(results) - len(batch) :]
        if term == entry.term:
            self._answer_batch(batch, answers)
        if len(self.door.parking):
            # Also where a fetch left jobs behind because its answer was full: others may be waiting for them.
            fetched = {
                queue
                for waiting, answer in zip(batch, answers, strict=True)
                if isinstance(waiting.ask, Fetch) and answer
                for queue in waiting.ask.queues
            }
            self.door.wake_pending(sorted(changes.woken | fetched))
        meters.apply_time.observe(perf_counter() - started)

    def _flush_soon(self) -> None:
        self._flush_at_ns = self._flush_at_ns or self._monotonic_ns() + FLUSH_AFTER_NS

    # Answering

    def _answer_batch(self, batch: list[Waiting], results: list[object]) -> None:
        door = self.door
        for waiting, result in zip(batch, results, strict=True):
            if isinstance(waiting.ask, Fetch):
                if not result:
                    door.wait_or_answer(waiting, waiting.ask)
                    continue
                self._fetched_queue = waiting.ask.queues[0]
            door.answer(waiting.peer, waiting.call_id, result)

    def _answer_queries(self) -> None:
        queries, self.door.queries = self.door.queries, []
        linearizable = []
        for waiting in queries:
            if isinstance(waiting.ask, GetJob):
                linearizable.append(waiting)
            elif isinstance(waiting.ask, GetStatus):
                self.door.answer(waiting.peer, waiting.call_id, self.status())
            elif isinstance(waiting.ask, Scan):
                piece = self.feed.scan(waiting.ask.start, waiting.ask.records_max, self._durable_index)
                self.door.answer(waiting.peer, waiting.call_id, piece)
        if linearizable:
            self.raft.read_index(linearizable)
            self._advance()

    def _answer_reads(self, context: object) -> None:
        assert isinstance(context, list)
        for waiting in context:
            job = self.tables.find_job(waiting.ask.job_id)
            if job is None:
                answer: object = Refused("JOB_NOT_FOUND", f"no job has the id {waiting.ask.job_id!r}")
            else:
                answer = JobRecord(job, self.tables.errors(job.id))
            self.door.answer(waiting.peer, waiting.call_id, answer)

    def _answer_pulls(self, now_ns: int) -> None:
        """A pull is answered when there is something to tell, or when its patience ends."""
        for _ in range(len(self.door.pulls)):
            waiting = self.door.pulls.popleft()
            pull = waiting.ask
            assert isinstance(pull, Pull)
            self.feed.confirm(pull.after)
            has_news = self.feed.has_after(pull.after) or self.presence.has_news()
            if not has_news and waiting.wait_until_ns > now_ns:
                self.door.pulls.append(waiting)
                continue
            batch = self.feed.pull(pull.after, pull.records_max, self.tables.overlay)
            batch.presence = self.presence.take_news()
            self.door.answer(waiting.peer, waiting.call_id, batch)

    def status(self) -> ShardStatus:
        meters, core, tables = self.meters, self.raft, self.tables
        return ShardStatus(
            shard=self.shard,
            node_id=self.node_id,
            role=core.role.value,
            leader=core.leader_id or "",
            term=core.term,
            commit_index=core.commit_index,
            applied_index=tables.applied.index,
            log_first_index=self._log.first_index,
            log_last_index=core.last_index,
            state_hash=tables.applied.hash.hex(),
            fsync=self._is_synced,
            uptime_s=(self._monotonic_ns() - self._started_ns) / 1e9,
            operations_total=meters.operations,
            entries_total=meters.entries,
            overloads_total=self.door.overloads,
            calls_waiting=len(self.door.operations),
            fetches_parked=len(self.door.parking),
            pulls_parked=len(self.door.pulls),
            leases=len(tables.leases),
            queues=len(tables.queues()),
            mirror_cursor=self.feed.receipt,
            batch_size=meters.batch_size,
            queue_time_s=meters.queue_time,
            apply_time_s=meters.apply_time,
            sync_time_s=meters.sync_time,
            memory_bytes=resident_bytes(),
            turns_total=meters.turns,
        )
