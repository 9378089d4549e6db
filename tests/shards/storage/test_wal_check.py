"""A torn end of LevelDB's log is forgiven, a damaged one is not."""

from pathlib import Path

import plyvel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corvo.model.errors import Corrupt
from shards.storage.wal_check import _masked_crc, check_tails
from tests.shards.rig import a_directory


def a_log(path: Path, sizes: list[int]) -> tuple[Path, list[int]]:
    """The log after so many writes, and where each of them ends."""
    db = plyvel.DB(str(path), create_if_missing=True)
    (log,) = path.glob("*.log")
    ends = []
    for number, size in enumerate(sizes):
        db.put(b"%d" % number, bytes([number % 251]) * size, sync=True)
        ends.append(log.stat().st_size)
    db.close()
    return log, ends


def test_the_sum_is_leveldbs() -> None:
    # RFC 3720, appendix B.4: 32 bytes of zeros have the CRC 0x8A9136AA; the mask is LevelDB's.
    assert _masked_crc(bytes(32)) == ((0x8A9136AA >> 15 | 0x8A9136AA << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_a_whole_log_is_sound(tmp_path: Path) -> None:
    a_log(tmp_path / "db", [100] * 20)
    check_tails(tmp_path / "db")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 3_000), min_size=2, max_size=30), st.data())
def test_a_log_that_is_cut_anywhere_is_only_torn(sizes: list[int], data: st.DataObject) -> None:
    with a_directory() as folder:
        log, ends = a_log(folder / "db", sizes)
        cut = data.draw(st.integers(0, ends[-1]))
        log.write_bytes(log.read_bytes()[:cut])
        check_tails(folder / "db")


@pytest.mark.parametrize("bit", [12, 14, 15])
def test_a_length_that_points_behind_the_end_is_damage_if_sound_records_follow(tmp_path: Path, bit: int) -> None:
    log, ends = a_log(tmp_path / "db", [100] * 10)
    content = bytearray(log.read_bytes())
    content[ends[4] + 4 + bit // 8] ^= 1 << bit % 8  # of the sixth record
    log.write_bytes(content)

    with pytest.raises(Corrupt, match="sound records follow"):
        check_tails(tmp_path / "db")


def test_of_the_last_record_nobody_can_tell(tmp_path: Path) -> None:
    log, ends = a_log(tmp_path / "db", [100] * 10)
    content = bytearray(log.read_bytes())
    content[ends[8] + 5] ^= 0x40
    log.write_bytes(content)

    check_tails(tmp_path / "db")
