"""How hypothesis searches: the same examples at every save, new ones when asked (HYPOTHESIS_PROFILE=search)."""

import os

from hypothesis import HealthCheck, settings

from tests.sharing import pytest_collection_modifyitems, pytest_xdist_make_scheduler

__all__ = ["pytest_collection_modifyitems", "pytest_xdist_make_scheduler"]

settings.register_profile("save", deadline=None, derandomize=True, database=None, max_examples=60)
settings.register_profile(
    "search", deadline=None, database=None, max_examples=2_000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "save"))
