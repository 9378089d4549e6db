"""The mirror's loop: pull the changes of every shard, write them, pull again.

Every shard of a new database is scanned whole, and so is a shard with a gap, whose feed no longer has the changes after
the cursor. The pieces of a scan are written as they arrive; the cursor moves with the last one (`course.py`).

    scan ──last piece──▶ catching up ──a short batch──▶ following (a pull waits at the shard)
      ▲                        │  ▲                          │
      └────────── gap ─────────┘  └──── a long batch, connection lost

One transaction takes whole batches, up to about ROWS_PER_TRANSACTION rows. Under load, the followed shards are pulled
together after a pause (a breath). A job that changes twice in that time is written once, and the shards get the cores.
The more there is to write, the longer the pause, because a row costs half as much in a long transaction. A shard that
is behind is pulled at once. When idle, the process wakes once a second for its heartbeat (`gateway/search/lag.py`) and
checks for a rebuild request.

The text indexes (`indexing.py`) come last: one slice at a time, when no shard has changes, a second after the first
write that they lack. Under load they get a tenth of the time, or less if no core is free.

A database that fails is rebuilt. If that fails too, or the disk is full, the process ends and is restarted. While a
database is unreachable, the mirror retries and pulls nothing: the shards keep what it has not acknowledged.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog
import zmq

from corvo.links.serial_link import SerialLink
from corvo.model.errors import Refusal
from corvo.model.timestamps import parse_rfc3339
from corvo.queries.feed import FeedBatch, ScanPiece
from gateway.mirror.contention import Contention
from gateway.mirror.course import RETRY_MS, ROWS_PER_TRANSACTION, STALE_PIECE_MS, Course, FollowPace
from gateway.mirror.databases import Databases
from gateway.mirror.shard_writes import ShardWrite
from gateway.mirror.store import AbsentDatabase, Store, UntrustedDatabase
from gateway.readdb import rebuild_request

BREATH_MS, BREATH_MS_MAX = 50, 200
BREATH_WRITING_SHARE = 0.1  # of a pause; more writing makes the pause longer
SIGN_OF_LIFE_MS = 1_000
INDEX_AFTER_MS = 1_000  # a job that ends within this is indexed once, with its result
INDEX_SLICE_MS = 20
INDEX_SHARE, INDEX_SHARE_CROWDED = 0.1, 0.02  # of the time under load; and if no core is free
NEVER = float("inf")

log = structlog.get_logger()


class MirrorFollower:
    def __init__(
        self,
        data_dir: Path,
        addresses: list[str],
        store: Store[Any],
        pace: FollowPace = FollowPace(),
        on_caught_up: Callable[[], object] = lambda: None,
    ) -> None:
        """Calls `on_caught_up` once, when every shard is followed for the first time."""
        self._on_caught_up: Callable[[], object] | None = on_caught_up
        self._data_dir = data_dir
        self._store = store
        self._pace = pace
        self._addresses = addresses
        self._courses: list[Course] = []
        self._databases = Databases(store)
        self._vouch_at = 0.0
        self._breath_at = 0.0
        self._wrote_s = 0.0  # since the last pause
        self._contention = Contention()
        self._index_at = 0.0  # not before; NEVER: nothing to do
        self._written_at = 0.0

    def run(self, stop: Callable[[], bool], stop_fd: int, beat: Callable[[], None] = lambda: None) -> None:
        """Runs until `stop_fd` is readable and `stop` returns true, then commits the received changes. Calls `beat` in
        every turn, at least once a second unless a turn takes longer."""
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._courses = [
            Course(shard, SerialLink(context, shard, address), records_max=self._pace.records_max)
            for shard, address in enumerate(self._addresses)
        ]
        poller = zmq.Poller()
        poller.register(stop_fd, zmq.POLLIN)
        for course in self._courses:
            poller.register(course.link.socket, zmq.POLLIN)
            poller.register(course.link.events, zmq.POLLIN)
        try:
            while not stop():
                beat()
                self._guarded(self._open)
                self._ask()
                has_news = bool(poller.poll(self._idle_ms()))
                self._guarded(self._turn)
                if not has_news:
                    self._guarded(self._index)
            self._guarded(self._turn)
            self._guarded(self._databases.close)
        finally:
            for course in self._courses:
                course.link.close()
            context.term()

    # The databases

    def _open(self) -> None:
        if self._databases.is_open or time.monotonic() < self._databases.open_at:
            return
        self._index_at = 0.0
        for course in self._courses:
            course.begin_anew()
        try:
            self._databases.open()
        except UntrustedDatabase as reason:
            self._rebuild(str(reason), is_fault=not isinstance(reason, AbsentDatabase))
            return
        assert self._databases.published is not None
        for shard, applied_index, caught_up_at, rows_total in self._databases.published.cursors():
            self._courses[shard].resume(applied_index, parse_rfc3339(caught_up_at) if caught_up_at else 0, rows_total)

    def _rebuild(self, reason: str, *, is_fault: bool) -> None:
        """The published database is unusable. A rebuild in progress receives all changes, so it goes on."""
        self._databases.distrust()
        if self._databases.building is None:
            self._databases.build(reason, is_fault=is_fault)
            for course in self._courses:
                course.begin_anew()

    def _rebuild_beside(self) -> None:
        """A requested rebuild. One in progress already serves the request."""
        if self._databases.building is None:
            self._databases.build("requested", is_fault=False)
            for course in self._courses:
                course.begin_copy()

    def _maybe_publish(self) -> None:
        if self._databases.building is None:
            for course in self._courses:
                course.end_copy()  # the rebuild was abandoned
        elif all(course.is_done for course in self._courses):
            self._databases.publish([course.cursor(is_now=False) for course in self._courses])
            self._index_at = 0.0

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except self._store.faults as error:
            reason, remedy = str(error).strip(), self._store.remedy(error)
            if remedy == "reopen":
                self._databases.lose(reason)
                for course in self._courses:
                    course.begin_anew()
            elif remedy == "rebuild" and self._databases.published is not None:
                self._guarded(lambda: self._rebuild(f"writing failed: {reason}", is_fault=True))
            else:
                raise

    # One turn

    def _turn(self) -> None:
        now = time.monotonic()
        turns: list[ShardWrite] = []
        for course in self._courses:
            was_asking = course.link.is_asking
            if course.link.notice():
                if was_asking:  # perhaps by an answer too big for a frame; repeating the request would repeat that
                    course.records_max = max(1, course.records_max // 2)
                course.lose()
                self._databases.fall_behind(course.shard)
            answer = course.link.receive()
            turn = None
            if isinstance(answer, FeedBatch):
                turn = self._take_batch(course, answer, now)
            elif isinstance(answer, ScanPiece):
                turn = course.take_piece(answer)
                course.ask_at = 0.0 if turn is not None else now + STALE_PIECE_MS / 1000
            elif isinstance(answer, Refusal):
                log.warning("a shard refused the mirror", shard=course.shard, code=answer.code)
                course.ask_at = now + max(answer.retry_after_ms, RETRY_MS) / 1000
            if turn is not None:
                course.widen(self._pace.records_max)
                turns.append(turn)
        self._write(turns)
        if self._on_caught_up is not None and all(course.is_done for course in self._courses):
            log.info("caught up", shards=len(self._courses))
            self._on_caught_up()
            self._on_caught_up = None
        if now >= self._vouch_at:
            self._vouch()

    def _take_batch(self, course: Course, batch: FeedBatch, now: float) -> ShardWrite | None:
        turn = course.take_batch(batch)
        if turn is None:
            course.ask_at = now + RETRY_MS / 1000
            self._databases.fall_behind(course.shard)
        elif course.is_done:
            course.ask_at = self._next_breath(now)
        return turn

    def _write(self, turns: list[ShardWrite]) -> None:
        """Writes whole turns, as many in one transaction as its bound allows."""
        began = time.monotonic()
        first = count = 0
        for number, turn in enumerate(turns):
            if count and count + turn.rows.count > ROWS_PER_TRANSACTION:
                self._databases.write(turns[first:number])
                first, count = number, 0
            count += turn.rows.count
        if turns:
            with self._contention.measured():
                self._databases.write(turns[first:])
            self._maybe_publish()
            self._written_at = time.monotonic()
            self._wrote_s += self._written_at - began
            self._index_at = min(self._index_at, self._written_at + INDEX_AFTER_MS / 1000)

    def _index(self) -> None:
        """Not during a rebuild, which should end soon; searches check unindexed jobs themselves."""
        now = time.monotonic()
        if self._is_indexing_late or now < self._index_at:
            return
        assert self._databases.published is not None
        is_behind = self._databases.published.index(INDEX_SLICE_MS)
        if not is_behind:
            self._index_at = NEVER
        elif now - self._written_at < INDEX_AFTER_MS / 1000:
            share = INDEX_SHARE_CROWDED if self._contention.is_crowded else INDEX_SHARE
            self._index_at = now + (time.monotonic() - now) / share

    @property
    def _is_indexing_late(self) -> bool:
        return self._databases.published is None or self._databases.building is not None

    # Requests and timers

    def _ask(self) -> None:
        if not self._databases.is_open:
            return
        now = time.monotonic()
        for course in self._courses:
            link = course.link
            if not link.is_up or now < course.ask_at or (link.is_asking and now < link.deadline_at):
                continue
            if link.is_asking:
                course.is_following = False  # no answer to a waiting pull: the shard may be stuck
            query, patience_ms = course.question(self._pace)
            if not link.ask(query, patience_ms, now):
                course.ask_at = now + RETRY_MS / 1000

    def _next_breath(self, now: float) -> float:
        """One pause for all shards: pulled together, they answer together and share a transaction."""
        if now >= self._breath_at:
            breath_s = min(max(BREATH_MS / 1000, self._wrote_s / BREATH_WRITING_SHARE), BREATH_MS_MAX / 1000)
            self._breath_at, self._wrote_s = now + breath_s, 0.0
        return self._breath_at

    def _idle_ms(self) -> int:
        now = time.monotonic()
        wake_at = self._vouch_at
        if not self._databases.is_open:
            wake_at = min(now + SIGN_OF_LIFE_MS / 1000, self._databases.open_at)
        else:
            if not self._is_indexing_late:
                wake_at = min(wake_at, self._index_at)
            for course in self._courses:
                if course.link.is_asking:
                    wake_at = min(wake_at, course.link.deadline_at)
                elif course.link.is_up:
                    wake_at = min(wake_at, course.ask_at)
        return max(0, min(SIGN_OF_LIFE_MS, int((wake_at - now) * 1000) + 1))

    def _vouch(self) -> None:
        """Once a second: records which shards had no changes, checks that the published database is present and sound,
        and checks for a rebuild request."""
        self._vouch_at = time.monotonic() + SIGN_OF_LIFE_MS / 1000
        is_wanted = self._databases.is_open and rebuild_request.take(self._data_dir)
        published = self._databases.published
        if published is None:
            return
        self._store.look(published)
        now = time.time_ns()
        parked = [course for course in self._courses if course.is_done and course.link.is_asking]
        quiet = [course for course in parked if now - course.caught_up_at >= SIGN_OF_LIFE_MS * 900_000]
        for course in quiet:
            course.caught_up_at = now
        if quiet:
            published.vouch([course.shard for course in quiet], now)
        if is_wanted:
            self._rebuild_beside()
