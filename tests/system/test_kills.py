"""The promise that the rest stands on: kill -9 of any process at any moment loses nothing and doubles nothing."""

import pytest

from chaos.kill_shards import ROLES, run
from chaos.node import Node

pytestmark = pytest.mark.system


def test_twenty_kills_of_shards_mirror_and_gateway_break_no_promise(node: Node) -> None:
    assert run(node, list(ROLES), kills=20, seed=20, pause_s=0.6) == []
