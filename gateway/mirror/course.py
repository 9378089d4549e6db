"""Where the mirror stands with one shard, and what an answer of it means.

Per shard there is one question at a time. `Pull(after)` is also a receipt, so `after` is never more than what is
committed. A scan reads the shard's whole state, piece by piece. There are two kinds:

    gap    nothing is known of what came after our cursor, or we have none. Nothing is pulled until the scan is whole;
           then the cursor stands where the scan began, and what changed meanwhile is pulled.
    copy   for a database that is built beside one that is being followed. Pieces and pulls take turns, and what is
           pulled goes into both. A piece shows what is on the shard's disk, which may be older than what was pulled
           before: such a piece would undo changes, and is asked for again.
"""

import time

import msgspec
import structlog

from corvo.endpoint import Query
from corvo.model.errors import Corrupt
from corvo.queries.feed import FeedBatch, Pull, Scan, ScanPiece
from gateway.mirror.link import ShardQuestions
from gateway.mirror.rows import presence_rows, to_rows, to_stretch
from gateway.mirror.shard_writes import Cursor, ShardWrite

ROWS_PER_TRANSACTION = 5_000
# A shard cuts a batch at `records_max` or when it is too big for a message. One shorter than both was everything.
WHOLE_BATCH_BYTES_MAX = 4 * 1024 * 1024
RETRY_MS = 100
STALE_PIECE_MS = 5  # a shard writes what it has applied within a few milliseconds
STALE_PIECES_MAX = 100  # in a row; then a pull finds out whether the shard still is the one that we know

log = structlog.get_logger()
_encode = msgspec.msgpack.Encoder().encode


class FollowPace(msgspec.Struct, frozen=True):
    """Spans that tests shorten."""

    wait_ms: int = 20_000  # how long a question stays parked at a shard with no news
    answer_ms: int = 5_000  # beyond that: how long an answer may take before it is given up
    records_max: int = ROWS_PER_TRANSACTION


class Sweep(msgspec.Struct):
    """A scan under way."""

    is_copy: bool
    start: bytes = b""
    as_of: int = 0  # of a gap: where the cursor stands when the scan is whole
    is_next: bool = True  # of a copy: whether a piece is asked for, or a pull
    stale_pieces: int = 0


class Course(msgspec.Struct):
    shard: int
    link: ShardQuestions
    after: int = 0  # committed up to here
    sweep: Sweep | None = msgspec.field(default_factory=lambda: Sweep(is_copy=False))
    is_following: bool = False
    caught_up_at: int = 0
    ask_at: float = 0.0  # not before
    rows_total: int = 0
    records_max: int = ROWS_PER_TRANSACTION  # in one answer; less after the line dropped under a question
    presence: bytes = b""  # as last written, to write it only when it changes

    def begin_anew(self) -> None:
        """Nothing is known of this shard."""
        self.after = self.rows_total = self.caught_up_at = 0
        self.lose()
        self.link.forget()
        self.sweep = Sweep(is_copy=False)

    def resume(self, applied_index: int, caught_up_at: int, rows_total: int) -> None:
        self.after, self.caught_up_at, self.rows_total = applied_index, caught_up_at, rows_total
        self.sweep = None

    def begin_copy(self) -> None:
        if self.sweep is None:  # else a gap is being scanned, for all databases that are open
            self.sweep = Sweep(is_copy=True)
            self.link.hurry()

    def end_copy(self) -> None:
        if self.sweep is not None and self.sweep.is_copy:
            self.sweep = None

    def lose(self) -> None:
        """We may no longer have everything, nor be about to hear of it."""
        self.is_following, self.presence, self.ask_at = False, b"", 0.0

    @property
    def is_done(self) -> bool:
        return self.is_following and self.sweep is None

    def question(self, pace: FollowPace) -> tuple[Query, int]:
        """What to ask now, and how long the answer may take."""
        if self.sweep is not None and (not self.sweep.is_copy or self.sweep.is_next):
            return Scan(self.sweep.start, self.records_max), pace.answer_ms
        # Before we know that we have everything, an answer is wanted even if it is empty.
        wait_ms = pace.wait_ms if self.is_done else 0
        return Pull(self.after, wait_ms, self.records_max), wait_ms + pace.answer_ms

    def take_batch(self, batch: FeedBatch) -> ShardWrite | None:
        """None: the shard has forgotten what came after our cursor."""
        if batch.is_gap or batch.upto < self.after:  # a shard behind our cursor was restored from elsewhere
            log.warning("gap: the shard is scanned whole", shard=self.shard, after=self.after, upto=batch.upto)
            self.lose()
            self.sweep = Sweep(is_copy=False)
            return None
        size = sum(len(value) for _, value in batch.records if value is not None)
        self.is_following = len(batch.records) < self.records_max and size < WHOLE_BATCH_BYTES_MAX
        presence = self.presence if batch.presence is None else _encode(batch.presence)
        # A copy knows nobody yet, whatever the other database was told.
        is_present_as_before = presence == self.presence and self.sweep is None
        self.presence = presence
        self.after = batch.upto
        if self.sweep is not None:
            self.sweep.is_next = True
        rows = to_rows(self.shard, batch.records)
        self.rows_total += rows.count
        return ShardWrite(
            shard=self.shard,
            rows=rows,
            cursor=self.cursor(is_now=True),
            presence=None if is_present_as_before else presence_rows(self.shard, batch.presence or []),
        )

    def take_piece(self, piece: ScanPiece) -> ShardWrite | None:
        """None: it is older than what we have, and was not taken."""
        sweep = self.sweep
        assert sweep is not None, "a piece that nobody asked for"
        if piece.next_key and piece.next_key <= sweep.start:
            raise Corrupt(f"shard {self.shard}: a scan from {sweep.start!r} goes on at {piece.next_key!r}")
        if sweep.is_copy and piece.as_of < self.after:
            sweep.stale_pieces += 1
            sweep.is_next = sweep.stale_pieces % STALE_PIECES_MAX != 0
            return None
        if not sweep.start:
            sweep.as_of = piece.as_of
        rows = to_rows(self.shard, piece.records)
        self.rows_total += rows.count
        stretch = to_stretch(sweep.start, piece.next_key)
        turn = ShardWrite(shard=self.shard, rows=rows, stretch=stretch, is_copy=sweep.is_copy)
        sweep.start, sweep.stale_pieces, sweep.is_next = piece.next_key, 0, False
        if not piece.next_key:
            self.sweep = None
            self.is_following = False  # until a pull has brought what changed since the last piece
            if not sweep.is_copy:
                self.after = sweep.as_of
                turn.cursor = self.cursor(is_now=True)
        return turn

    def widen(self, records_max: int) -> None:
        """Back to the full number, slowly: each step too far costs a line."""
        self.records_max = min(self.records_max + self.records_max // 4 + 1, records_max)

    def cursor(self, is_now: bool) -> Cursor:
        """`is_now`: the answer at hand shows how things are at this moment."""
        now = time.time_ns()
        if self.is_following and is_now:
            self.caught_up_at = now
        return Cursor(
            shard=self.shard,
            applied_index=self.after,
            updated_at=now,
            caught_up_at=self.caught_up_at,
            is_following=self.is_following,
            rows_total=self.rows_total,
        )
