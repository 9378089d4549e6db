"""A read database as the mirror would have written it, and the application beside it.

Tests that use `place` run on SQLite and on PostgreSQL.
"""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.gateway.search.conftest import Written
from tests.gateway.whole_house import WholeHouse
from tests.support.read_dbs import FilePlace, Place, ServerPlace

_numbers = count(1)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        yield FilePlace(tmp_path)
    else:
        made = ServerPlace(request.getfixturevalue("postgres"), f"test_{next(_numbers)}")
        yield made
        made.clear()


@pytest.fixture(scope="session")
def spares() -> list[ServerPlace]:
    """Databases on PostgreSQL that tests have left empty: making one takes longer than most tests."""
    return []


@pytest.fixture(params=["sqlite", "postgres"])
def kept_place(request: pytest.FixtureRequest, tmp_path: Path, spares: list[ServerPlace]) -> Iterator[Place]:
    """For tests that need a published database and do not care where it comes from."""
    if request.param == "sqlite":
        yield FilePlace(tmp_path)
    else:
        server = request.getfixturevalue("postgres")
        made = spares.pop() if spares else ServerPlace(server, f"test_{next(_numbers)}")
        yield made
        if made.wipe():
            spares.append(made)


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    made = Written(FilePlace(tmp_path))
    made.put_cursor(index=100)
    yield made
    made.close()


@pytest.fixture
def house(written: Written) -> Iterator[WholeHouse]:
    with WholeHouse(written.path) as made:
        yield made


@pytest.fixture
def blind_house(tmp_path: Path) -> Iterator[WholeHouse]:
    """Without a `read.db`: the mirror has not built it yet."""
    with WholeHouse(tmp_path / "none.db", shard_count=2) as made:
        yield made
