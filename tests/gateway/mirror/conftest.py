"""Shards for a mirror to follow."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .fake_shard import FakeShard


@pytest.fixture
def shards(tmp_path: Path) -> Iterator[list[FakeShard]]:
    made = [FakeShard(f"ipc://{tmp_path}/s{number}") for number in range(2)]
    for shard in made:
        shard.start()
    yield made
    for shard in made:
        shard.stop()
