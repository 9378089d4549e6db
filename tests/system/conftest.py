"""A node for tests: in a directory with a short name, on a port that the OS picks, ended by its own handle."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.node import Node


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="corvo-") as path:
        yield Path(path)


@pytest.fixture
def node(folder: Path) -> Iterator[Node]:
    node = Node.start(folder / "data")
    yield node
    node.stop()


@pytest.fixture(scope="module")
def shared_node() -> Iterator[Node]:
    """For tests that leave the processes alone and use queues of their own."""
    with tempfile.TemporaryDirectory(prefix="corvo-") as path:
        node = Node.start(Path(path) / "data")
        yield node
        node.stop()
