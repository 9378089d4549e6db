"""The mirror's loop: ask every shard what changed, write it, ask again.

Per shard there is one question at a time. `Pull(after)` is also a receipt, so `after` is never more than what is
committed. A shard that has forgotten what came after our cursor (a gap), and every shard of a new file, is scanned
whole; the scan's stretches are written as they come and the cursor moves when the last one is in.

    scan ──last piece──▶ catching up ──a short batch──▶ following (questions parked at the shard)
      ▲                        │  ▲                          │
      └────────── gap ─────────┘  └──── a long batch, line lost

One transaction takes whole batches up to about ROWS_PER_TRANSACTION rows. While there is traffic the shards that are
followed are asked again together, at most BREATH_MS later: jobs that change twice in that time are written once,
and the cores are left to the shards. A shard that we are behind is asked at once. Idle, the process wakes once a
second for its sign of life (see `gateway/answers/lag.py`).

The indexes of texts (`indexing.py`) come after all of this: a slice at a time, when no shard has news, a second after
the first write that they lack. While there is traffic they get a tenth of the time.

A database that fails is built anew; while that fails too, or the disk is full, the process ends and is restarted.
"""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog
import zmq

from corvo.errors import Corrupt, Refusal
from corvo.moments import parse_rfc3339
from corvo.queries.feed import Batch, Piece, Pull, Scan
from gateway.mirror import trust
from gateway.mirror.database import Cursor, MirrorDb, Turn
from gateway.mirror.link import ShardLink
from gateway.mirror.rows import presence_rows, to_rows, to_stretch

ROWS_PER_TRANSACTION = 5_000
BREATH_MS = 50
SIGN_OF_LIFE_MS = 1_000
INDEX_AFTER_MS = 1_000  # a job that ends within this is indexed once, with its result
INDEX_SLICE_MS = 20
INDEX_SHARE = 0.1  # of the time, while there is traffic
# A shard cuts a batch at `records_max` or when it is too big for a message. One shorter than both was everything.
WHOLE_BATCH_BYTES_MAX = 4 * 1024 * 1024
RETRY_MS = 100
NEVER = float("inf")
_OUTSIDE_FAULTS = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_BUSY})

log = structlog.get_logger()
_encode = msgspec.msgpack.Encoder().encode


class Pace(msgspec.Struct, frozen=True):
    """Spans that tests shorten."""

    wait_ms: int = 20_000  # how long a question stays parked at a shard with no news
    answer_ms: int = 5_000  # beyond that: how long an answer may take before it is given up
    records_max: int = ROWS_PER_TRANSACTION


class Course(msgspec.Struct):
    """Where we stand with one shard."""

    shard: int
    link: ShardLink
    after: int = 0  # committed up to here
    is_scanning: bool = True
    scan_start: bytes = b""
    scan_as_of: int = 0
    is_following: bool = False
    caught_up_at: int = 0
    ask_at: float = 0.0  # not before
    rows_total: int = 0
    records_max: int = ROWS_PER_TRANSACTION  # in one answer; less after the line dropped under a question
    presence: bytes = b""  # as last written, to write it only when it changes


class Follower:
    def __init__(self, data_dir: Path, addresses: list[str], boot_id: str, pace: Pace = Pace()) -> None:
        self._path = data_dir / trust.READ_DB
        self._boot_id = boot_id
        self._pace = pace
        self._addresses = addresses
        self._courses: list[Course] = []
        self._is_building = False
        self._built_since = 0.0
        self._vouch_at = 0.0
        self._breath_at = 0.0
        self._index_at = 0.0  # not before; NEVER: nothing to do
        self._written_at = 0.0
        self._db: MirrorDb
        self._inodes = (0, 0)

    def run(self, stop: Callable[[], bool], stop_fd: int) -> None:
        """Until `stop_fd` becomes readable and `stop` agrees. What has arrived by then is committed."""
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._courses = [
            Course(shard, ShardLink(context, address), records_max=self._pace.records_max)
            for shard, address in enumerate(self._addresses)
        ]
        poller = zmq.Poller()
        poller.register(stop_fd, zmq.POLLIN)
        for course in self._courses:
            poller.register(course.link.socket, zmq.POLLIN)
            poller.register(course.link.events, zmq.POLLIN)
        try:
            self._open()
            while not stop():
                self._ask()
                has_news = bool(poller.poll(self._idle_ms()))
                self._guarded(self._turn)
                if not has_news:
                    self._guarded(self._index)
            self._guarded(self._turn)
            self._close()
        finally:
            for course in self._courses:
                course.link.close()
            context.term()

    # The database

    def _open(self) -> None:
        try:
            self._db = trust.open_trusted(self._path, self._boot_id, len(self._courses))
        except trust.Untrusted as reason:
            self._rebuild(str(reason))
            return
        self._inodes = trust.inodes(self._path)
        for shard, applied_index, caught_up_at, rows_total in self._db.cursors():
            course = self._courses[shard]
            course.after, course.is_scanning, course.rows_total = applied_index, False, rows_total
            course.caught_up_at = parse_rfc3339(caught_up_at) if caught_up_at else 0
        log.info("read.db opened", generation=self._db.meta().generation, sqlite=sqlite3.sqlite_version)

    def _rebuild(self, reason: str) -> None:
        log.warning("rebuild of read.db begins", reason=reason, sqlite=sqlite3.sqlite_version)
        self._is_building, self._built_since, self._index_at = True, time.monotonic(), 0.0
        self._db = trust.begin_rebuild(self._path, self._boot_id, len(self._courses), time.time_ns())
        for course in self._courses:
            course.link.forget()
            course.after = course.rows_total = course.caught_up_at = 0
            course.is_following, course.presence, course.ask_at = False, b"", 0.0
            _begin_scan(course)

    def _maybe_publish(self) -> None:
        if self._is_building and all(course.is_following for course in self._courses):
            self._db = trust.publish(self._db, self._path)
            self._is_building = False
            self._inodes = trust.inodes(self._path)
            rows = sum(course.rows_total for course in self._courses)
            seconds = round(time.monotonic() - self._built_since, 3)
            log.info("rebuild of read.db ended", rows=rows, seconds=seconds)

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except sqlite3.Error as error:
            if self._is_building or getattr(error, "sqlite_errorcode", 0) & 0xFF in _OUTSIDE_FAULTS:
                raise
            self._db.close()
            self._rebuild(f"writing failed: {error}")

    def _close(self) -> None:
        if self._is_building:
            self._db.close()
            log.info("stopped during a rebuild")
            return
        trust.close_clean(self._db)
        log.info("read.db closed")

    # One turn

    def _turn(self) -> None:
        now = time.monotonic()
        turns: list[Turn] = []
        for course in self._courses:
            was_asking = course.link.is_asking
            if course.link.notice():
                if was_asking:  # perhaps over an answer too big for a frame, and the same question would get it again
                    course.records_max = max(1, course.records_max // 2)
                course.is_following, course.presence, course.ask_at = False, b"", 0.0
                self._db.fall_behind(course.shard)
            answer = course.link.receive()
            if isinstance(answer, Batch):
                turns += self._take_batch(course, answer, now)
                self._widen(course)
            elif isinstance(answer, Piece):
                turns.append(self._take_piece(course, answer))
                self._widen(course)
            elif isinstance(answer, Refusal):
                log.warning("a shard refused the mirror", shard=course.shard, code=answer.code)
                course.ask_at = now + max(answer.retry_after_ms, RETRY_MS) / 1000
        self._write(turns)
        if now >= self._vouch_at:
            self._vouch()

    def _take_batch(self, course: Course, batch: Batch, now: float) -> list[Turn]:
        if batch.is_gap or batch.upto < course.after:  # a shard behind our cursor was restored from elsewhere
            log.warning("gap: the shard is scanned whole", shard=course.shard, after=course.after, upto=batch.upto)
            course.is_following, course.presence, course.ask_at = False, b"", now + RETRY_MS / 1000
            self._db.fall_behind(course.shard)
            _begin_scan(course)
            return []
        size = sum(len(value) for _, value in batch.records if value is not None)
        course.is_following = len(batch.records) < course.records_max and size < WHOLE_BATCH_BYTES_MAX
        presence = course.presence if batch.presence is None else _encode(batch.presence)
        is_present_as_before = presence == course.presence
        course.presence = presence
        course.after = batch.upto
        if course.is_following:
            course.ask_at = self._next_breath(now)
        rows = to_rows(course.shard, batch.records)
        course.rows_total += rows.count
        return [
            Turn(
                shard=course.shard,
                rows=rows,
                cursor=_cursor(course),
                presence=None if is_present_as_before else presence_rows(course.shard, batch.presence or []),
            )
        ]

    def _take_piece(self, course: Course, piece: Piece) -> Turn:
        start, next_key = course.scan_start, piece.next_key
        if next_key and next_key <= start:
            raise Corrupt(f"shard {course.shard}: a scan from {start!r} goes on at {next_key!r}")
        if not start:
            course.scan_as_of = piece.as_of
        rows = to_rows(course.shard, piece.records)
        course.rows_total += rows.count
        course.scan_start = next_key
        turn = Turn(shard=course.shard, rows=rows, stretch=to_stretch(start, next_key))
        if not next_key:
            course.is_scanning = False
            course.after = course.scan_as_of
            turn.cursor = _cursor(course)
        return turn

    def _widen(self, course: Course) -> None:
        """Back to the full number, slowly: each step too far costs a line."""
        course.records_max = min(course.records_max + course.records_max // 4 + 1, self._pace.records_max)

    def _write(self, turns: list[Turn]) -> None:
        """Whole turns, as many in one transaction as stay within its bound."""
        first = count = 0
        for number, turn in enumerate(turns):
            if count and count + turn.rows.count > ROWS_PER_TRANSACTION:
                self._db.write(turns[first:number])
                first, count = number, 0
            count += turn.rows.count
        if turns:
            self._db.write(turns[first:])
            self._maybe_publish()
            self._written_at = time.monotonic()
            self._index_at = min(self._index_at, self._written_at + INDEX_AFTER_MS / 1000)

    def _index(self) -> None:
        """Not while building: the sooner the file is there, the better, and every search knows what the index lacks."""
        now = time.monotonic()
        if self._is_building or now < self._index_at:
            return
        is_behind = self._db.index(INDEX_SLICE_MS)
        if not is_behind:
            self._index_at = NEVER
        elif now - self._written_at < INDEX_AFTER_MS / 1000:
            self._index_at = now + (time.monotonic() - now) / INDEX_SHARE

    # Questions and timers

    def _ask(self) -> None:
        now = time.monotonic()
        for course in self._courses:
            link = course.link
            if not link.is_up or now < course.ask_at or (link.is_asking and now < link.deadline_at):
                continue
            if link.is_asking:
                course.is_following = False  # parked without an answer: the shard may be stuck
            if course.is_scanning:
                sent = link.ask(Scan(course.scan_start, course.records_max), self._pace.answer_ms, now)
            else:
                # Before we know that we have everything, an answer is wanted even if it is empty.
                wait_ms = self._pace.wait_ms if course.is_following else 0
                query = Pull(course.after, wait_ms, course.records_max)
                sent = link.ask(query, wait_ms + self._pace.answer_ms, now)
            if not sent:
                course.ask_at = now + RETRY_MS / 1000

    def _next_breath(self, now: float) -> float:
        """One breath for all shards: asked together they answer together, and share a transaction."""
        if now >= self._breath_at:
            self._breath_at = now + BREATH_MS / 1000
        return self._breath_at

    def _idle_ms(self) -> int:
        now = time.monotonic()
        wake_at = self._vouch_at if self._is_building else min(self._vouch_at, self._index_at)
        for course in self._courses:
            if course.link.is_asking:
                wake_at = min(wake_at, course.link.deadline_at)
            elif course.link.is_up:
                wake_at = min(wake_at, course.ask_at)
        return max(0, min(SIGN_OF_LIFE_MS, int((wake_at - now) * 1000) + 1))

    def _vouch(self) -> None:
        """Once a second: say which shards have had nothing new, and look whether the file is still ours and sound."""
        now = time.time_ns()
        if not self._is_building:
            inodes = trust.inodes(self._path)
            if inodes != self._inodes or 0 in inodes:  # 0 on both sides: deleted before we had looked even once
                raise sqlite3.DatabaseError("the file was deleted or replaced")
            if trust.is_suspected(self._path):
                raise sqlite3.DatabaseError("a reader found it damaged")
            parked = [course for course in self._courses if course.is_following and course.link.is_asking]
            quiet = [course for course in parked if now - course.caught_up_at >= SIGN_OF_LIFE_MS * 900_000]
            for course in quiet:
                course.caught_up_at = now
            if quiet:
                self._db.vouch([course.shard for course in quiet], now)
            self._db.maybe_cut_log()
        self._vouch_at = time.monotonic() + SIGN_OF_LIFE_MS / 1000


def _begin_scan(course: Course) -> None:
    course.is_scanning, course.scan_start, course.scan_as_of = True, b"", 0


def _cursor(course: Course) -> Cursor:
    now = time.time_ns()
    if course.is_following:
        course.caught_up_at = now
    return Cursor(
        shard=course.shard,
        applied_index=course.after,
        updated_at=now,
        caught_up_at=course.caught_up_at,
        is_following=course.is_following,
        rows_total=course.rows_total,
    )
