"""How hypothesis searches: the same examples at every save, new ones when asked (HYPOTHESIS_PROFILE=search).

And a PostgreSQL server for those tests that want one.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.sharing import pytest_collection_modifyitems, pytest_xdist_make_scheduler
from tests.support.postgres import NoPostgres, Server

__all__ = ["postgres", "pytest_collection_modifyitems", "pytest_xdist_make_scheduler"]

settings.register_profile("save", deadline=None, derandomize=True, database=None, max_examples=60)
settings.register_profile(
    "search", deadline=None, database=None, max_examples=2_000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "save"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """One server for the whole run, started by the first test that asks for it."""
    try:
        server = Server()
    except NoPostgres as reason:
        pytest.skip(str(reason))
    yield server
    server.remove()
