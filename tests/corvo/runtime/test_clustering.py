"""Names and addresses of nodes, as settings give them. What does not fit together: see test_settings.py."""

import pytest

from corvo.model.limits import NODES_MAX
from corvo.runtime.clustering import (
    advertised_address,
    is_clustered,
    parse_addresses,
    parse_peers,
    pod_of,
    shard_address,
    unreachable_address,
)
from corvo.runtime.settings import Settings


def test_peers_are_addresses_by_name() -> None:
    assert parse_peers("a=db-1:9400, b=[::1]:9410,") == {"a": "db-1:9400", "b": "[::1]:9410"}
    assert parse_peers("") == {}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("db-1:9400", "'db-1:9400' is not name=host:port"),
        ("=db-1:9400", "is not name=host:port"),
        ("a b=db-1:9400", "is not name=host:port"),
        ("a=db-1", "'a=db-1': expected host:port"),
        ("a=:9400", "is not an address that others can reach"),
        ("a=x:1,a=y:1", "a is named twice"),
        (",".join(f"n{number}=x:1" for number in range(NODES_MAX + 1)), f"a cluster has at most {NODES_MAX}"),
    ],
)
def test_peers_that_cannot_be_read_are_told_in_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        parse_peers(text)


def test_addresses_are_a_list() -> None:
    assert parse_addresses(" db-1:9400,db-2:9400 ,") == ["db-1:9400", "db-2:9400"]
    with pytest.raises(ValueError, match="'db-2': expected host:port"):
        parse_addresses("db-1:9400,db-2")


def test_a_shard_listens_further_on() -> None:
    assert shard_address("db-1:9400", 3) == "db-1:9403"
    assert shard_address("[::1]:9400", 0) == "[::1]:9400"


def test_a_node_without_a_way_to_others_is_alone() -> None:
    assert not is_clustered(Settings(raft_bind="127.0.0.1:9400", raft_advertise="db-1:9400"))
    assert all(map(is_clustered, (Settings(peers="a=x:1"), Settings(join="x:1"), Settings(discover="dns"))))
    assert is_clustered(Settings(bootstrap=True))


def test_a_pod_of_a_stateful_set_is_named_by_its_machine_and_the_headless_service_by_its_domain() -> None:
    assert pod_of("corvo-0.corvo-nodes.shop.svc.cluster.local") == ("corvo-0", "corvo-nodes.shop.svc.cluster.local")
    for host_name in ("localhost", "", ".local"):
        with pytest.raises(ValueError, match="--discover dns needs --discover-dns-name"):
            pod_of(host_name)


def test_a_machine_that_does_not_know_its_name_is_told_unreachable() -> None:
    assert unreachable_address(Settings(bootstrap=True), "localhost") == "localhost:9400"
    assert unreachable_address(Settings(bootstrap=True), "db-1") == ""
    assert unreachable_address(Settings(bootstrap=True, raft_advertise="db-1:9400"), "localhost") == ""
    assert unreachable_address(Settings(bootstrap=True, raft_bind="127.0.0.1:9400"), "localhost") == ""


def test_others_are_told_what_was_said_then_what_peers_say_then_the_name_of_the_machine() -> None:
    peers = "node-1=db-1:9400,node-2=db-2:9400"

    assert advertised_address(Settings(raft_advertise="x:1", peers=peers), "host") == "x:1"
    assert advertised_address(Settings(peers=peers, node_id="node-2"), "host") == "db-2:9400"
    assert advertised_address(Settings(join="db-1:9400"), "host") == "host:9400"
    assert advertised_address(Settings(join="db-1:9400", raft_bind="10.0.0.1:9500"), "host") == "10.0.0.1:9500"
