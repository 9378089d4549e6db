"""A `read.db` as the mirror would have written it, and the application beside it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.mirror import trust
from tests.gateway.answers.conftest import Written
from tests.gateway.whole_house import WholeHouse


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    made = Written(tmp_path / trust.READ_DB)
    made.put_cursor(index=100)
    yield made
    made.writer.close()


@pytest.fixture
def house(written: Written) -> Iterator[WholeHouse]:
    with WholeHouse(written.path) as made:
        yield made


@pytest.fixture
def blind_house(tmp_path: Path) -> Iterator[WholeHouse]:
    """Without a `read.db`: the mirror has not built it yet."""
    with WholeHouse(tmp_path / "none.db", shard_count=2) as made:
        yield made
