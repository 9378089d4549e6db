"""The mirror's progress with one shard, and how it handles the shard's answers.

Each shard gets one request at a time. `Pull(after)` also acknowledges, so `after` never exceeds what is committed. A
scan reads the shard's whole state in pieces. There are two kinds:

    gap    the shard no longer has the changes after the mirror's cursor, or there is no cursor. Pulls stop until the
           scan is complete. Then the cursor is set to where the scan began, and pulls fetch the changes since.
    copy   fills a new database while the published one is followed. Pieces and pulls alternate, and pulled changes go
           into both databases. A piece shows the shard's disk, which may be older than an earlier pull. Such a piece
           would undo changes, so it is requested again.
"""

import time

import msgspec
import structlog

from corvo.endpoint import Query
from corvo.links.serial_link import SerialLink
from corvo.model.errors import Corrupt
from corvo.queries.feed import FeedBatch, Pull, Scan, ScanPiece
from gateway.mirror.rows import presence_rows, to_rows, to_stretch
from gateway.mirror.shard_writes import Cursor, ShardWrite

ROWS_PER_TRANSACTION = 5_000
# A shard ends a batch at `records_max` or at the size limit of a message. A batch below both holds all changes.
WHOLE_BATCH_BYTES_MAX = 4 * 1024 * 1024
RETRY_MS = 100
STALE_PIECE_MS = 5  # a shard writes applied entries to disk within a few milliseconds
STALE_PIECES_MAX = 100  # in a row; then a pull shows whether the shard's state was replaced

log = structlog.get_logger()
_encode = msgspec.msgpack.Encoder().encode


class FollowPace(msgspec.Struct, frozen=True):
    """Intervals that tests shorten."""

    wait_ms: int = 20_000  # how long a pull waits at a shard without changes
    answer_ms: int = 5_000  # on top of that: how long an answer may take
    records_max: int = ROWS_PER_TRANSACTION


class Sweep(msgspec.Struct):
    """A scan in progress."""

    is_copy: bool
    start: bytes = b""
    as_of: int = 0  # gap: the cursor when the scan is complete
    is_next: bool = True  # copy: whether the next request is a piece or a pull
    stale_pieces: int = 0


class Course(msgspec.Struct):
    shard: int
    link: SerialLink
    after: int = 0  # committed up to here
    sweep: Sweep | None = msgspec.field(default_factory=lambda: Sweep(is_copy=False))
    is_following: bool = False
    caught_up_at: int = 0
    ask_at: float = 0.0  # not before
    rows_total: int = 0
    records_max: int = ROWS_PER_TRANSACTION  # in one answer; smaller after the connection was lost during a request
    presence: bytes = b""  # as last written; written again only when it changes

    def begin_anew(self) -> None:
        """Starts over: the database holds nothing reliable of this shard."""
        self.after = self.rows_total = self.caught_up_at = 0
        self.lose()
        self.link.forget()
        self.sweep = Sweep(is_copy=False)

    def resume(self, applied_index: int, caught_up_at: int, rows_total: int) -> None:
        self.after, self.caught_up_at, self.rows_total = applied_index, caught_up_at, rows_total
        self.sweep = None

    def begin_copy(self) -> None:
        if self.sweep is None:  # else a gap scan runs, which fills all open databases
            self.sweep = Sweep(is_copy=True)
            self.link.hurry()

    def end_copy(self) -> None:
        if self.sweep is not None and self.sweep.is_copy:
            self.sweep = None

    def lose(self) -> None:
        """The connection is lost: the mirror may miss changes and no longer follows the shard."""
        self.is_following, self.presence, self.ask_at = False, b"", 0.0

    @property
    def is_done(self) -> bool:
        return self.is_following and self.sweep is None

    def question(self, pace: FollowPace) -> tuple[Query, int]:
        """The next request, and how long its answer may take."""
        if self.sweep is not None and (not self.sweep.is_copy or self.sweep.is_next):
            return Scan(self.sweep.start, self.records_max), pace.answer_ms
        # Until the mirror has caught up, even an empty answer is useful at once.
        wait_ms = pace.wait_ms if self.is_done else 0
        return Pull(self.after, wait_ms, self.records_max), wait_ms + pace.answer_ms

    def take_batch(self, batch: FeedBatch) -> ShardWrite | None:
        """None if there is a gap: the shard no longer has the changes after the cursor."""
        if batch.is_gap or batch.upto < self.after:  # a shard behind the cursor was restored from elsewhere
            log.warning("gap: scanning the whole shard", shard=self.shard, after=self.after, upto=batch.upto)
            self.lose()
            self.sweep = Sweep(is_copy=False)
            return None
        size = sum(len(value) for _, value in batch.records if value is not None)
        self.is_following = len(batch.records) < self.records_max and size < WHOLE_BATCH_BYTES_MAX
        presence = self.presence if batch.presence is None else _encode(batch.presence)
        # A copy has no presence rows yet, even if the published database is up to date.
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
        """None if the piece is older than the changes pulled so far; it is then not used."""
        sweep = self.sweep
        assert sweep is not None, "a piece without a scan"
        if piece.next_key and piece.next_key <= sweep.start:
            raise Corrupt(f"shard {self.shard}: a scan from {sweep.start!r} continues at {piece.next_key!r}")
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
            self.is_following = False  # until a pull has fetched the changes since the last piece
            if not sweep.is_copy:
                self.after = sweep.as_of
                turn.cursor = self.cursor(is_now=True)
        return turn

    def widen(self, records_max: int) -> None:
        """Returns slowly to the full number: a step too far costs a connection."""
        self.records_max = min(self.records_max + self.records_max // 4 + 1, records_max)

    def cursor(self, is_now: bool) -> Cursor:
        """`is_now`: the last answer shows the shard's present state."""
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
