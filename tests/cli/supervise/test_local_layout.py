"""Names and ports of a local cluster, and that a second start finds them again."""

import random
import socket
from pathlib import Path

import pytest

from corvo.cli.supervise import local_layout
from corvo.cli.supervise.local_layout import HOST, Layout, LayoutOptions, NodePlace, settle
from corvo.cli.supervise.ports import free_row
from corvo.cli.supervise.server import CannotStart

DICE = random.Random()
SOME = free_row(HOST, 14, DICE)


def wish(tmp_path: Path, **values: int) -> Layout:
    return settle(tmp_path, LayoutOptions(str(tmp_path), **values), DICE)


def ports_of(made: Layout) -> list[int]:
    return [
        port for place in made.nodes for port in (place.port, *range(place.raft_port, place.raft_port + made.shards))
    ]


def test_a_new_directory_gets_three_nodes_with_ports_of_their_own(tmp_path: Path) -> None:
    made = wish(tmp_path)

    assert [place.node_id for place in made.nodes] == ["node-1", "node-2", "node-3"]
    assert made.shards == 4 and len(set(ports_of(made))) == 3 * 5
    assert made.peers.startswith(f"node-1=127.0.0.1:{made.nodes[0].raft_port},node-2=")


def test_a_second_start_finds_the_same_ports(tmp_path: Path) -> None:
    assert wish(tmp_path, nodes=2, shards=3) == wish(tmp_path) == wish(tmp_path, nodes=2)


def test_ports_that_are_given_are_consecutive(tmp_path: Path) -> None:
    first = free_row(HOST, 8, DICE)

    made = wish(tmp_path, nodes=2, shards=3, port=first, raft_port=first + 2)

    assert made.nodes == [NodePlace("node-1", first, first + 2), NodePlace("node-2", first + 1, first + 5)]
    assert (made.nodes[0].address, made.nodes[0].raft_address) == (f"{HOST}:{first}", f"{HOST}:{first + 2}")


def test_the_port_of_http_may_change_later(tmp_path: Path) -> None:
    before = wish(tmp_path, nodes=2, shards=1)
    first = free_row(HOST, 2, DICE)

    after = wish(tmp_path, port=first)

    assert [place.port for place in after.nodes] == [first, first + 1]
    assert [place.raft_port for place in after.nodes] == [place.raft_port for place in before.nodes]
    assert wish(tmp_path) == after


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"nodes": 3}, "made with 2 nodes and 1 shards; start with --nodes 2 --shards 1 or use another --data-dir"),
        ({"shards": 2}, "made with 2 nodes and 1 shards"),
        ({"raft_port": 9}, "know each other from port"),
    ],
)
def test_what_the_directory_was_not_made_for_is_refused(tmp_path: Path, values: dict[str, int], words: str) -> None:
    wish(tmp_path, nodes=2, shards=1)

    with pytest.raises(CannotStart, match=words):
        wish(tmp_path, **values)


def test_a_port_of_http_among_those_between_nodes_is_refused_later_too(tmp_path: Path) -> None:
    made = wish(tmp_path, nodes=2, shards=2)

    with pytest.raises(CannotStart, match="is wanted for HTTP and between nodes"):
        wish(tmp_path, port=made.nodes[1].raft_port)
    assert wish(tmp_path) == made


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"port": SOME, "raft_port": SOME + 2}, "is wanted for HTTP and between nodes"),
        ({"port": 65_534}, "--port is 65534: 3 ports are needed"),
        ({"raft_port": 65_530}, "--raft-port is 65530: 12 ports are needed"),
    ],
)
def test_ports_that_cannot_be_are_refused(tmp_path: Path, values: dict[str, int], words: str) -> None:
    with pytest.raises(CannotStart, match=words):
        wish(tmp_path, **values)

    assert not (tmp_path / "local.json").exists()


def test_a_port_in_use_is_refused_and_nothing_is_remembered(tmp_path: Path) -> None:
    first = free_row(HOST, 3, DICE)
    with socket.socket() as other:
        other.bind((HOST, first + 1))
        other.listen(1)
        with pytest.raises(CannotStart, match=rf":{first + 1} for node-2: address already in use; .*another --port"):
            wish(tmp_path, port=first)

    assert not (tmp_path / "local.json").exists()


def test_ports_of_before_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = wish(tmp_path, nodes=1, shards=1)
    other = socket.socket()
    other.bind((HOST, made.nodes[0].raft_port))
    other.listen(1)
    monkeypatch.setattr(local_layout.time, "sleep", lambda _: other.close())  # type: ignore[attr-defined]  # it ends meanwhile

    assert wish(tmp_path) == made


def test_a_file_that_cannot_be_read_is_not_made_anew(tmp_path: Path) -> None:
    (tmp_path / "local.json").write_text('{"shards": 1, "nodes": []}')

    with pytest.raises(CannotStart, match=r"local\.json cannot be read"):
        wish(tmp_path)
