"""The feed: in order, at least once, never silently less."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corvo.model.limits import MESSAGE_BYTES_MAX
from corvo.queries.feed import FeedBatch, Scan, ScanPiece
from corvo.state import keys
from corvo.state.kv import Overlay
from shards import feed as feed_module
from shards.feed import Feed
from tests.shards.rig import MemoryDisk, Mirror, mirrored

HUGE = 1_000_000
WHOLE_BATCH_BYTES_MAX = 4 * 1024 * 1024  # of gateway/mirror/follow.py, which shards may not import
JOB, OTHER, THIRD = keys.job("1"), keys.job("2"), keys.job("3")

Records = dict[bytes, bytes | None]


class Shard:
    """A feed with the state beside it, as `replica.py` keeps them: entries, one batch now and then, crashes."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.log: list[Records] = []  # durable before it is applied
        self.durable = 0
        self.start()

    def start(self) -> None:
        self.overlay = Overlay(self.disk)
        self.feed = Feed(self.disk, self.durable)
        for index in range(self.durable + 1, len(self.log) + 1):
            self._apply(index)

    def entry(self, **records: Any) -> None:
        """`entry(j1=b"x", j2=None)`; without records, an entry that changed nothing, such as the first of a term."""
        self.write({keys.job(name[1:]): value for name, value in records.items()})

    def write(self, records: Records) -> None:
        self.log.append(records)
        self._apply(len(self.log))

    def _apply(self, index: int) -> None:
        self.overlay.changes.update(self.log[index - 1])
        self.feed.add(index, self.log[index - 1])

    def flush(self) -> None:
        self.disk.write(self.overlay.take_changes(), self.feed.take_part())
        self.durable = len(self.log)

    def pull(self, after: int, records_max: int = HUGE) -> FeedBatch:
        self.feed.confirm(after)
        return self.feed.pull(after, records_max, self.overlay)

    def scan(self, start: bytes = b"", records_max: int = HUGE) -> ScanPiece:
        return self.feed.scan(start, records_max, self.durable)

    def outbox(self) -> list[int]:
        return [keys.log_index(key) for key, _ in self.disk.scan(keys.FEED, keys.prefix_end(keys.FEED))]


@contextmanager
def bounds(fresh: int = 20_000, outbox: int = 200_000, trim: int = 256) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feed_module, "FRESH_RECORDS_MAX", fresh)
        patch.setattr(feed_module, "OUTBOX_ENTRIES_MAX", outbox)
        patch.setattr(feed_module, "TRIM_PER_BATCH", trim)
        yield


# Following


def test_a_job_that_changed_often_is_told_once_with_its_newest_value() -> None:
    shard = Shard()
    shard.entry(j1=b"a", j2=b"x")
    shard.entry(j1=b"b")
    shard.entry(j1=None)

    batch = shard.pull(0)

    assert (batch.upto, dict(batch.records), batch.is_gap) == (3, {JOB: None, OTHER: b"x"}, False)
    assert len(batch.records) == 2


def test_each_pull_brings_what_came_since_the_last() -> None:
    shard = Shard()
    shard.entry(j1=b"a")
    assert shard.pull(0).upto == 1
    shard.entry(j2=b"b")

    batch = shard.pull(1)

    assert (batch.upto, batch.records) == (2, [(OTHER, b"b")])
    assert not shard.feed.has_after(2)
    assert shard.pull(2).records == []


def test_an_entry_that_changed_nothing_moves_the_head_and_the_mirror_with_it() -> None:
    shard = Shard()
    shard.entry(j1=b"a")
    shard.pull(0)

    shard.entry()

    assert shard.feed.head == 2
    assert shard.feed.has_after(1)
    assert shard.pull(1) == FeedBatch(2, [])
    assert not shard.feed.has_after(2)
    shard.flush()
    assert shard.outbox() == []


def test_a_pull_is_a_receipt_and_the_outbox_forgets_what_was_received() -> None:
    shard = Shard()
    for _ in range(5):
        shard.entry(j1=b"a")
    shard.flush()
    assert shard.outbox() == [1, 2, 3, 4, 5]

    shard.pull(0)  # the answer is under way: nothing may be forgotten yet
    shard.flush()
    assert shard.outbox() == [1, 2, 3, 4, 5]

    shard.pull(3)
    shard.flush()
    assert shard.outbox() == [4, 5]
    assert shard.feed.receipt == 3


def test_the_outbox_is_trimmed_in_slices() -> None:
    shard = Shard()
    with bounds(trim=2):
        for _ in range(5):
            shard.entry(j1=b"a")
        shard.flush()
        shard.pull(5)

        left = []
        for _ in range(3):
            shard.flush()
            left.append(shard.outbox())

    assert left == [[3, 4, 5], [5], []]


def test_a_lost_answer_is_served_again_from_the_outbox() -> None:
    shard = Shard()
    shard.entry(j1=b"a")
    shard.entry(j2=b"b")
    lost = shard.pull(0)
    shard.flush()
    shard.entry(j3=b"c")

    again = shard.pull(0)

    assert lost.upto == 2
    assert (again.upto, dict(again.records)) == (3, {JOB: b"a", OTHER: b"b", THIRD: b"c"})


def test_a_lost_answer_whose_entries_are_not_yet_on_disk_is_served_again_too() -> None:
    shard = Shard()
    shard.entry(j1=b"a")
    shard.pull(0)

    assert dict(shard.pull(0).records) == {JOB: b"a"}


def test_a_mirror_that_is_far_behind_catches_up_in_pieces() -> None:
    shard = Shard()
    with bounds(fresh=3):
        for number in range(1, 8):
            shard.entry(**{f"j{number}": b"v"})

        uptos, after, told = [], 0, {}
        while shard.feed.has_after(after):
            batch = shard.pull(after, records_max=3)
            after = batch.upto
            uptos.append(after)
            told.update(batch.records)

    assert uptos == [3, 6, 7]
    assert told == mirrored(shard.overlay)


def test_changes_beyond_the_bound_in_memory_wait_in_the_outbox_and_memory_is_used_again_afterwards() -> None:
    shard = Shard()
    with bounds(fresh=2):
        shard.entry(j1=b"a", j2=b"b", j3=b"c")
        assert shard.feed._fresh == {}

        assert dict(shard.pull(0).records) == {JOB: b"a", OTHER: b"b", THIRD: b"c"}
        shard.entry(j1=b"z")

        assert shard.feed._fresh == {JOB: b"z"}
        assert shard.pull(1).records == [(JOB, b"z")]


# Gaps


def test_an_outbox_that_outgrows_its_bound_is_cut_and_a_mirror_behind_the_cut_is_told_so() -> None:
    shard = Shard()
    with bounds(outbox=3):
        for _ in range(5):
            shard.entry(j1=b"a")
        shard.flush()

    assert shard.outbox() == [3, 4, 5]
    assert shard.feed.has_after(1)
    assert shard.pull(1) == FeedBatch(5, [], is_gap=True)
    assert not shard.pull(2).is_gap
    shard.start()
    assert shard.pull(1).is_gap, "the cut is remembered over a restart"
    assert not shard.pull(2).is_gap


def test_a_mirror_that_is_ahead_of_its_shard_is_told_so() -> None:
    shard = Shard()
    shard.entry(j1=b"a")

    assert shard.feed.has_after(2)
    assert shard.pull(2) == FeedBatch(1, [], is_gap=True)
    assert shard.feed.receipt == 0, "what a mirror of another life received is no receipt"


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_mirror_that_went_back_behind_its_receipt_is_told_so(is_restarted: bool) -> None:
    """A power cut may take the last transactions of read.db, which is not synced; the receipt was trimmed by then."""
    shard = Shard()
    shard.entry(j1=b"a")
    shard.entry(j2=b"b")
    shard.pull(0)
    shard.pull(2)
    shard.flush()
    assert shard.outbox() == []
    if is_restarted:
        shard.start()

    batch = shard.pull(1)

    assert batch.is_gap, "the change of entry 2 is forgotten: silence would leave job 2 out of the mirror for ever"
    assert shard.feed.has_after(1)


# Scans


def test_a_scan_in_pieces_is_the_state_and_ends_with_an_empty_key() -> None:
    shard = Shard()
    records: Records = {
        keys.job("1"): b"a",
        keys.job("2"): b"b",
        keys.job_error("1", 1): b"e",
        keys.queue("mail"): b"q",
        keys.worker("w"): b"w",
        keys.batch("b"): b"b",
        keys.schedule("s"): b"s",
        keys.unique("mail", "k"): b"l",
        keys.claims_at("mail", 1): b"c",
    }
    others: Records = {
        keys.active("mail", "1"): b"x" * 16,
        keys.due(keys.DUE, 1, "2"): b"",
        keys.retrying("k", 1, "2"): b"",
        keys.scheduled("k", 1, "2"): b"",
        keys.forwarded("1"): b"\x01",
        keys.idempotent("mail", "k"): b"i",
        keys.outbox(1, 1): b"e",
    }
    shard.write({**records, **others})
    shard.flush()

    pieces = [shard.scan(records_max=2)]
    while pieces[-1].next_key:
        pieces.append(shard.scan(pieces[-1].next_key, records_max=2))

    assert [pair for piece in pieces for pair in piece.records] == sorted(records.items())
    assert [len(piece.records) for piece in pieces] == [2, 2, 2, 2, 1]
    assert all(piece.as_of == 1 for piece in pieces)


def test_a_scan_of_an_empty_shard_is_one_empty_piece() -> None:
    assert Shard().scan() == ScanPiece(0, [], b"")


def test_a_pull_after_a_scan_brings_what_the_scan_could_not_see() -> None:
    shard = Shard()
    shard.entry(j1=b"a")
    shard.flush()
    shard.entry(j1=b"b")

    piece = shard.scan()
    batch = shard.pull(piece.as_of)

    assert piece == ScanPiece(1, [(JOB, b"a")], b"")
    assert batch == FeedBatch(2, [(JOB, b"b")])


# Sizes


MIB = 1024 * 1024


def size(records: Sequence[tuple[bytes, bytes | None]]) -> int:
    return sum(len(value or b"") for _, value in records)


@pytest.mark.parametrize("is_lost", [False, True])
def test_large_jobs_are_told_in_batches_that_fit_a_message(is_lost: bool) -> None:
    shard = Shard()
    for number in range(200):
        shard.entry(**{f"j{number}": bytes(MIB // 2)})
        if number % 20 == 0:
            shard.flush()
    if is_lost:
        shard.pull(0)

    told: dict[bytes, bytes | None] = {}
    after, batches = 0, 0
    while shard.feed.has_after(after):
        batch = shard.pull(after)
        assert size(batch.records) <= MESSAGE_BYTES_MAX // 4
        # What the mirror concludes from the size: a batch smaller than this was everything.
        assert size(batch.records) >= WHOLE_BATCH_BYTES_MAX or batch.upto == shard.feed.head
        told.update(batch.records)
        after, batches = batch.upto, batches + 1

    assert told == mirrored(shard.overlay)
    assert batches < 30


def test_large_jobs_that_nobody_pulls_do_not_pile_up_in_memory() -> None:
    shard = Shard()

    for number in range(100):
        shard.entry(**{f"j{number}": bytes(MIB)})

    assert sum(len(value or b"") for value in shard.feed._fresh.values()) <= MESSAGE_BYTES_MAX // 4


def test_an_entry_that_fits_no_message_is_a_gap_and_the_scan_that_follows_is_in_pieces() -> None:
    shard, mirror = Shard(), Mirror()
    while mirror.is_scanning:
        ask(mirror, shard, HUGE, is_lost=False)
    shard.write({keys.job(str(number)): bytes(MIB) for number in range(70)})
    assert shard.pull(0).is_gap
    shard.flush()

    pieces = 0
    while mirror.is_scanning or mirror.after < shard.feed.head:
        if mirror.is_scanning:
            assert size(shard.scan(mirror.start).records) <= MESSAGE_BYTES_MAX // 4
            pieces += 1
        ask(mirror, shard, HUGE, is_lost=False)

    assert pieces >= 4
    assert mirror.records == mirrored(shard.overlay)


# Against a naive mirror


def ask(mirror: Mirror, shard: Shard, records_max: int, is_lost: bool) -> None:
    question = mirror.question(records_max)
    answer: ScanPiece | FeedBatch
    if isinstance(question, Scan):
        answer = shard.scan(question.start, records_max)
    else:
        answer = shard.pull(question.after, records_max)
    if not is_lost:
        mirror.take(answer)


_keys = st.sampled_from(
    [
        *(keys.job("1"), keys.job("2"), keys.job_error("1", 1), keys.queue("a"), keys.worker("w")),
        *(keys.batch("b"), keys.schedule("s")),
    ]
)
_values = st.none() | st.sampled_from([b"1", b"2", b"3"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.dictionaries(_keys, _values, max_size=4)),
        st.tuples(st.just("write"), st.dictionaries(_keys, _values, min_size=1, max_size=4)),
        st.tuples(st.just("flush"), st.none()),
        st.tuples(st.just("ask"), st.booleans()),
        st.tuples(st.just("ask"), st.just(False)),
        st.tuples(st.just("ask"), st.just(False)),
        st.tuples(st.just("restart the shard"), st.none()),
        st.tuples(st.just("remember the mirror"), st.none()),
        st.tuples(st.just("set the mirror back"), st.none()),
    ),
    min_size=15,
    max_size=60,
)


@settings(max_examples=120)
@given(steps, st.sampled_from([1, 3, 9]), st.integers(0, 4), st.sampled_from([1, 3, 50]), st.sampled_from([1, 50]))
def test_when_writes_stop_the_mirror_shows_the_state_whatever_happened_before(
    steps: list[tuple[str, Any]], records_max: int, fresh: int, outbox: int, trim: int
) -> None:
    shard, mirror = Shard(), Mirror()
    remembered = deepcopy(mirror)

    with bounds(fresh, outbox, trim):
        for verb, value in steps:
            match verb:
                case "write":
                    shard.write(value)
                case "flush":
                    shard.flush()
                case "ask":
                    ask(mirror, shard, records_max, is_lost=value)
                case "restart the shard":
                    shard.start()
                case "remember the mirror":
                    remembered = deepcopy(mirror)
                case "set the mirror back":
                    mirror = deepcopy(remembered)

        shard.flush()
        queries = 0
        while mirror.is_scanning or mirror.after < shard.feed.head or shard.feed.has_after(mirror.after):
            ask(mirror, shard, records_max, is_lost=False)
            queries += 1
            assert queries < 200, "the mirror never arrives"

    assert mirror.records == mirrored(shard.overlay)
