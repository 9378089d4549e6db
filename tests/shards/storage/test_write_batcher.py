"""What the batcher hands out; how it is written is the replica's affair (`test_replica.py`, `test_crash.py`)."""

from pathlib import Path

from shards.storage.write_batcher import FLUSH_AFTER_NS, RIDE_AFTER_NS
from tests.shards.rig import Rig
from tests.support.builders import enqueue


def test_a_batch_is_handed_out_once_and_counts_when_it_is_written(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "db")
    rig.sleep()  # what a start applies is on disk then
    batcher = rig.replica._batcher
    before, writes = batcher.durable_index, rig.disk.writes
    rig.replica.tables.begin(before + 1, 1, rig.wall_ns)
    batcher.state_changed(rig.monotonic_ns)
    batcher.add_to_log({b"log": b"1"})

    batch = batcher.whole_batch()

    assert {b"log": b"1"} in batch.parts and batch.applied_index == before + 1
    assert (batcher.durable_index, rig.disk.writes) == (before, writes), "it writes nothing itself"
    batcher.written(batch)
    assert batcher.durable_index == before + 1
    assert batcher.whole_batch().parts[1] == {} and batcher.next_ns() is None
    rig.kill()


def test_the_log_goes_alone_until_the_state_is_old_enough_to_go_with_it(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "db")
    rig.ask(enqueue(1))
    batcher, now = rig.replica._batcher, rig.monotonic_ns
    rig.sleep()
    batcher.state_changed(now)

    young, old = batcher.log_batch(now + RIDE_AFTER_NS - 1), batcher.log_batch(now + RIDE_AFTER_NS)

    assert young.applied_index is None and old.applied_index == rig.replica.tables.applied.index
    batcher.state_changed(now)
    assert batcher.next_ns() == now + FLUSH_AFTER_NS
    assert not batcher.is_due(now + FLUSH_AFTER_NS - 1) and batcher.is_due(now + FLUSH_AFTER_NS)
    rig.kill()
