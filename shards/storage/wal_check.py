"""Tells a torn end of LevelDB's log from a damaged one.

The last write before a power cut may have reached the disk in part: LevelDB then drops it, rightly, for it was not
acknowledged. But it goes by the length that a record claims. One flipped bit in the length of an acknowledged
record makes it claim more than there is, and LevelDB drops it with everything behind it, without a word. The
difference: behind a torn record there is nothing; behind a damaged one there are sound records.

The format: blocks of 32 KiB; records of a masked CRC-32C (4 bytes), a length (2), a kind (1) and the data; a block's
last bytes, too few for a head, are zero.
"""

import struct
from pathlib import Path

from corvo.model.errors import Corrupt

_BLOCK_BYTES = 32 * 1024
_HEAD = struct.Struct("<IHB")
_KINDS = range(1, 5)  # full, first, middle, last
_MASK_DELTA = 0xA282EAD8


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_CRC_TABLE = _crc_table()


def check_tails(database: Path) -> None:
    """`Corrupt` when a log of this database ends with records that LevelDB would silently drop."""
    for log in sorted(database.glob("*.log")):
        size = log.stat().st_size
        with log.open("rb") as file:
            file.seek(size // _BLOCK_BYTES * _BLOCK_BYTES)  # in whole blocks LevelDB itself notices
            block = file.read()
        torn_at = _first_overlong(block)
        if torn_at is not None and (sound_at := _next_sound(block, torn_at + 1)) is not None:
            raise Corrupt(
                f"{log.name} is damaged {len(block) - torn_at} bytes before its end: a record claims to be longer than"
                f" the file, and sound records follow {sound_at - torn_at} bytes later"
            )


def _first_overlong(block: bytes) -> int | None:
    at = 0
    while at + _HEAD.size <= len(block):
        _, length, _ = _HEAD.unpack_from(block, at)
        if at + _HEAD.size + length > len(block):
            return at
        at += _HEAD.size + length
    return None


def _next_sound(block: bytes, start: int) -> int | None:
    for at in range(start, len(block) - _HEAD.size):
        crc, length, kind = _HEAD.unpack_from(block, at)
        end = at + _HEAD.size + length
        if kind in _KINDS and length and end <= len(block) and crc == _masked_crc(block[at + 6 : end]):
            return at
    return None


def _masked_crc(kind_and_data: bytes) -> int:
    crc = 0xFFFFFFFF
    table = _CRC_TABLE
    for byte in kind_and_data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF
