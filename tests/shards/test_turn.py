from pathlib import Path

from shards.turn import TurnList, TurnStep
from tests.shards.replica_group import Group
from tests.shards.rig import Rig
from tests.support.builders import enqueue


def test_the_earliest_moment_of_all_parts_counts_and_none_asks_for_nothing() -> None:
    idle, soon, late = (TurnStep(lambda now_ns: None, lambda at=at: at) for at in (None, 5, 9))

    assert TurnList(idle, late, soon).next_ns() == 5
    assert TurnList(idle).next_ns() is None
    assert TurnList(TurnStep(lambda now_ns: None)).next_ns() is None


def test_parts_take_their_turns_in_order_and_a_list_of_parts_is_a_part() -> None:
    taken: list[str] = []
    first, second, third = (TurnStep(lambda now_ns, name=name: taken.append(f"{name}{now_ns}")) for name in "abc")

    TurnList(TurnList(first, second), third).turn(7)

    assert taken == ["a7", "b7", "c7"]


def test_a_replica_that_has_done_everything_asks_for_no_turn_at_once(tmp_path: Path) -> None:
    """A part whose `turn` does not move its own `next_ns` on would keep a core busy."""
    rig = Rig(tmp_path / "db")
    rig.ask(enqueue(1))
    for _ in range(10):
        assert rig.sleep() > 0
    rig.kill()


def test_the_same_of_every_replica_of_a_group(tmp_path: Path) -> None:
    group = Group(tmp_path)
    group.ask(group.leader(), enqueue(1))
    group.pass_time(1_000)
    for node in group.nodes.values():
        node.turn()
        next_ns = node.replica.next_ns()
        assert next_ns is not None and next_ns > group.now_ns
    group.close()
