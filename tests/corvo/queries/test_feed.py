"""What the mirror asks of a shard, over the wire."""

from corvo import wire
from corvo.model.job import Worker
from corvo.queries.feed import FeedBatch, Pull, Scan, ScanPiece
from tests.support.builders import NOW


def test_a_batch_says_deleted_apart_from_empty() -> None:
    batch = FeedBatch(7, [(b"a", b""), (b"b", None)], presence=[Worker("w1", "host", ["mail"], NOW, NOW)])

    assert wire.decode_result(Pull, wire.reply_to(1, batch)) == batch


def test_a_batch_tells_nobody_waits_apart_from_as_before() -> None:
    for presence in (None, []):
        batch = FeedBatch(1, [], presence=presence)
        assert wire.decode_result(Pull, wire.reply_to(1, batch)).presence == presence


def test_the_last_piece_of_a_scan_has_no_next_key() -> None:
    piece = ScanPiece(7, [(b"a", b"1")], b"")

    assert wire.decode_result(Scan, wire.reply_to(1, piece)) == piece
