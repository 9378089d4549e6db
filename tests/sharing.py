"""How several workers share the suite: a file is played whole by one of them, and what is long is begun first.

Whole clusters and kills (tests/system) go one after another: two of them at once would be a machine so busy that
leaders are taken for dead, and that is another test.
"""

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

ONE_AFTER_ANOTHER = "tests/system/"


class FileByFile(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return ONE_AFTER_ANOTHER if nodeid.startswith(ONE_AFTER_ANOTHER) else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileByFile:
    config.option.loadscopereorder = False  # by the number of tests, clusters would come last
    return FileByFile(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Alone, the order stays: what is quick tells first."""
    if hasattr(config, "workerinput"):
        slow = {item.path for item in items if item.get_closest_marker("system")}
        items.sort(key=lambda item: (not item.nodeid.startswith(ONE_AFTER_ANOTHER), item.path not in slow))
