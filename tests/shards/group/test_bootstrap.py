"""Who founds a cluster and who joins one: the decisions, then meetings over real sockets, then the process."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import structlog
import zmq
from hypothesis import given
from hypothesis import strategies as st

from corvo.runtime.process import RUN, Identity, read_identity, write_identity, write_settings
from corvo.runtime.settings import Settings
from shards.group import bootstrap
from shards.group.bootstrap import (
    Bootstrap,
    BootstrapFailed,
    Patience,
    Resolver,
    check_advertised,
    check_name,
    check_secrecy,
    cluster_id_of,
    discover,
    found,
    is_majority,
    join,
    sighted,
)
from shards.group.messages import Introduction, Welcome
from shards.group.peers import Keys, Peers

ROOT = Path(__file__).parents[3]
PATIENCE_S = 20
KEYS = Keys(b"a secret of the whole cluster")
ME = Introduction("a", "a:9400", 4)
PEERS = {"a": "a:9400", "b": "b:9400", "c": "c:9400"}
OURS = cluster_id_of(PEERS, 4, KEYS)


def fresh(name: str, shards: int = 4, nodes: dict[str, str] | None = None) -> Welcome:
    return Welcome(name, f"{name}:9400", shards, nodes=nodes or {})


def member(name: str, cluster_id: str = OURS, knows_you: bool = False, founders: tuple[str, ...] = ()) -> Welcome:
    return Welcome(name, f"{name}:9400", 4, cluster_id, founders, {"b": "b:9400", "c": "c:9400"}, knows_you)


# --- what is decided


@pytest.mark.parametrize(
    "answers", [[], [fresh("b")], [fresh("b", nodes=PEERS), member("c")], [member("b"), member("c")]]
)
def test_a_node_of_the_list_founds_unless_somebody_objects(answers: list[Welcome]) -> None:
    assert found(ME, PEERS, answers, KEYS) == Identity(OURS, "a", 4, founders=("a", "b", "c"), nodes=PEERS)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (fresh("b", shards=8), "b at b:9400 has 8 shards and this node 4: start with --shards 8"),
        (member("b", "another"), "b at b:9400 belongs to another cluster"),
        (member("b", knows_you=True), "a has lived in the cluster before and its data is gone: remove it with"),
        (fresh("b", nodes={"a": "a:9400", "b": "b:9400"}), "b at b:9400 was started with other --peers"),
        (Welcome("a", "elsewhere:9400", 4), "two nodes are called a, this one at a:9400 and one at elsewhere:9400"),
    ],
)
def test_what_a_founder_may_be_told(answer: Welcome, sentence: str) -> None:
    with pytest.raises(BootstrapFailed, match=sentence):
        found(ME, PEERS, [fresh("c"), answer], KEYS)


def test_a_lost_disk_is_told_its_way_back() -> None:
    with pytest.raises(BootstrapFailed, match="`corvo cluster remove a`, then start it with --join b:9400"):
        found(ME, PEERS, [member("b", knows_you=True)], KEYS)


def test_a_founder_must_be_on_the_list() -> None:
    with pytest.raises(BootstrapFailed, match=r"x is not among --peers \(a, b, c\): give one of these as --node-id"):
        found(Introduction("x", "x:9400", 4), PEERS, [], KEYS)


@given(st.permutations(sorted(PEERS)))
def test_all_founders_compute_one_cluster(order: list[str]) -> None:
    assert cluster_id_of({name: PEERS[name] for name in order}, 4, KEYS) == OURS


@pytest.mark.parametrize(
    ("nodes", "shards", "keys"),
    [
        ({**PEERS, "c": "c:9500"}, 4, KEYS),
        ({"a": "a:9400", "b": "b:9400"}, 4, KEYS),
        (PEERS, 8, KEYS),
        (PEERS, 4, None),
        (PEERS, 4, Keys(b"another")),
    ],
)
def test_another_cluster_has_another_id(nodes: dict[str, str], shards: int, keys: Keys | None) -> None:
    assert len(OURS) == 32
    assert cluster_id_of(nodes, shards, keys) != OURS


def test_who_joins_takes_the_cluster_as_it_is_and_founds_nothing() -> None:
    assert join(ME, []) is None
    assert join(ME, [fresh("b"), fresh("c", shards=8)]) is None
    nodes = {"b": "b:9400", "c": "c:9400"}
    assert join(ME, [fresh("d"), member("b", "c1")]) == Identity("c1", "a", 4, founders=(), nodes=nodes)


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ([Welcome("b", "b:9400", 8, "c1")], "has 8 shards and this node 4"),
        ([member("b", knows_you=True)], "a has lived in the cluster before"),
        ([member("b", "c1"), member("c", "c2")], "b at b:9400 and c at c:9400 belong to different clusters"),
        ([Welcome("a", "elsewhere:9400", 4, "c1")], "two nodes are called a"),
        ([Welcome("a", "elsewhere:9400", 4)], "two nodes are called a"),
    ],
)
def test_what_a_joiner_may_be_told(answers: list[Welcome], sentence: str) -> None:
    with pytest.raises(BootstrapFailed, match=sentence):
        join(ME, answers)
    with pytest.raises(BootstrapFailed, match=sentence):
        discover(ME, 3, answers, KEYS)


def test_beginners_found_when_all_see_the_same() -> None:
    here = [fresh("b", nodes=PEERS), fresh("c", nodes=PEERS)]
    assert discover(ME, 3, here, KEYS) == Identity(OURS, "a", 4, founders=("a", "b", "c"), nodes=PEERS)
    assert discover(ME, 3, [*here, fresh("a")], KEYS) is not None  # the name led to ourselves too
    assert discover(ME, 3, here[:1], KEYS) is None
    assert discover(ME, 4, here, KEYS) is None
    assert discover(ME, 2, here, KEYS) is None
    assert discover(ME, 3, [here[0], fresh("c", nodes={"c": "c:9400", "a": "a:9400"})], KEYS) is None


def test_a_founder_that_comes_late_is_still_one_and_anybody_else_joins() -> None:
    late = discover(ME, 3, [member("b", founders=("a", "b", "c"))], KEYS)
    assert late == Identity(OURS, "a", 4, founders=("a", "b", "c"), nodes=PEERS)
    other = discover(ME, 3, [member("b", founders=("b", "c", "d")), fresh("x", shards=8)], KEYS)
    assert other is not None
    assert (other.cluster_id, other.founders) == (OURS, ())


@given(st.data(), st.integers(1, 4), st.integers(0, 3))
def test_of_two_sets_that_share_a_node_only_one_is_founded(data: st.DataObject, expected: int, more: int) -> None:
    """Nodes hear each other in any order, and end when they have decided."""
    mes = {name: Introduction(name, f"{name}:9400", 4) for name in "abcdefg"[: expected + more]}
    heard: dict[str, dict[str, Welcome]] = {name: {} for name in mes}
    decided: dict[str, Identity] = {}
    pairs = [(asker, asked) for asker in mes for asked in mes if asker != asked]
    order = data.draw(st.lists(st.sampled_from(pairs), max_size=60)) if pairs else []
    everybody = pairs * 3 if not more else []
    for asker, asked in [*order, *everybody, *((name, name) for name in mes)]:
        if asker in decided:
            continue
        if asked in decided:
            known = decided[asked]
            answer = Welcome(asked, f"{asked}:9400", 4, known.cluster_id, known.founders or (), known.nodes)
        else:
            answer = fresh(asked, nodes=sighted(mes[asked], heard[asked].values()))
        heard[asker][asked] = answer
        if len({answer.cluster_id for answer in heard[asker].values() if answer.cluster_id}) > 1:
            continue  # told apart, and refused
        identity = discover(mes[asker], expected, heard[asker].values(), KEYS)
        if identity is not None:
            decided[asker] = identity
    founded = {identity.cluster_id: identity.founders or () for identity in decided.values() if identity.founders}
    voters = [name for founders in founded.values() for name in founders]
    assert len(voters) == len(set(voters))
    if not more:
        assert decided.keys() == mes.keys()
        assert len(founded) == 1


def test_names_are_compared_with_addresses() -> None:
    check_name(ME, Introduction("a", "a:9400", 8))
    check_name(ME, Introduction("b", "a:9400", 4))
    with pytest.raises(BootstrapFailed, match=r"two nodes are called a.*give each its own --node-id"):
        check_name(ME, Introduction("a", "b:9400", 4))


def test_without_a_secret_nodes_meet_on_loopback_only() -> None:
    check_secrecy(None, ["127.0.0.1:9400", "[::1]:9400", "localhost:9400"])
    check_secrecy(KEYS, ["10.0.0.1:9400", ":9400"])
    for address in ("10.0.0.1:9400", ":9400", "host:9400"):
        with pytest.raises(BootstrapFailed, match="--cluster-secret-file"):
            check_secrecy(None, ["127.0.0.1:9400", address])


def test_a_machine_that_calls_itself_localhost_must_be_told_its_name() -> None:
    with pytest.raises(BootstrapFailed, match="cannot reach this one at localhost:9400: give --raft-advertise"):
        check_advertised(Settings(join="b:9400"), "localhost")
    check_advertised(Settings(join="b:9400"), "a")
    check_advertised(Settings(join="b:9400", raft_bind="127.0.0.1:9400"), "localhost")
    check_advertised(Settings(peers="node-1=localhost:9400"), "localhost")


# --- over sockets


def free_address() -> str:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


class Running:
    """A node of a cluster that runs: what answers introductions once there is data."""

    def __init__(self, address: str, answer: Callable[[Introduction], Welcome]) -> None:
        self._is_over = Event()
        self._ready = Event()
        self._thread = Thread(target=self._run, args=(address, answer), daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)

    def _run(self, address: str, answer: Callable[[Introduction], Welcome]) -> None:
        context: zmq.Context[Any] = zmq.Context()
        peers = Peers(context, "running", "c1/0/4", address, None)
        self._ready.set()
        while not self._is_over.is_set():
            peers.wait(20)
            peers.receive()
            for sender, introduction in peers.introductions():
                peers.welcome(sender, answer(introduction))
        peers.close()
        context.term()

    def close(self) -> None:
        self._is_over.set()
        self._thread.join(PATIENCE_S)


@pytest.fixture
def running() -> Iterator[Callable[..., str]]:
    nodes: list[Running] = []

    def start(answer: Callable[[Introduction], Welcome]) -> str:
        address = free_address()
        nodes.append(Running(address, answer))
        return address

    yield start
    for node in nodes:
        node.close()


def hold(
    settings: Settings, resolve: Callable[[], list[str]] | None = None, patience: Patience = Patience()
) -> Identity:
    held = Bootstrap(settings, "localhost", resolve, patience)
    try:
        return held.run()
    finally:
        held.close()


def hold_all(meetings: list[Callable[[], Identity]]) -> list[Identity]:
    with ThreadPoolExecutor(len(meetings)) as pool:
        futures = [pool.submit(one) for one in meetings]
        return [future.result(PATIENCE_S) for future in futures]


@pytest.mark.parametrize("is_secret", [False, True], ids=["plain", "curve"])
def test_three_nodes_of_a_list_found_one_cluster(tmp_path: Path, is_secret: bool) -> None:
    nodes = {name: free_address() for name in ("n1", "n2", "n3")}
    secret = tmp_path / "secret"
    secret.touch(0o600)
    secret.write_bytes(b"s" * 32)
    text = ",".join(f"{name}={address}" for name, address in nodes.items())
    file = str(secret) if is_secret else ""
    settings = [
        Settings(node_id=name, raft_bind=address, peers=text, cluster_secret_file=file)
        for name, address in nodes.items()
    ]
    identities = hold_all([lambda one=one: hold(one, patience=Patience(listen=1)) for one in settings])
    assert {identity.cluster_id for identity in identities} == {
        cluster_id_of(nodes, 4, Keys(b"s" * 32) if is_secret else None)
    }
    assert {identity.node_id for identity in identities} == set(nodes)
    assert all((identity.founders, identity.nodes) == (("n1", "n2", "n3"), nodes) for identity in identities)


def test_a_majority_of_a_list_founds_without_the_rest() -> None:
    nodes = {name: free_address() for name in ("n1", "n2", "n3")}
    peers = ",".join(f"{name}={address}" for name, address in nodes.items())
    settings = [Settings(node_id=name, raft_bind=nodes[name], peers=peers) for name in ("n1", "n2")]

    identities = hold_all([lambda one=one: hold(one, patience=Patience(listen=0.2)) for one in settings])

    assert [identity.founders for identity in identities] == [("n1", "n2", "n3")] * 2


@pytest.mark.parametrize(
    ("heard", "is_enough"), [({"n1"}, False), ({"n1", "n2"}, True), ({"n1", "stranger", "n9"}, False)]
)
def test_a_founder_waits_for_a_majority(heard: set[str], is_enough: bool) -> None:
    """Alone it could not be elected anyway; and it may have lived before, and lost its disk."""
    assert is_majority(heard, {"n1": "a:1", "n2": "b:1", "n3": "c:1"}) is is_enough


def test_a_list_of_one_founds_at_once() -> None:
    address = free_address()
    identity = hold(
        Settings(node_id="n1", raft_bind=address, peers=f"n1={address}"), patience=Patience(listen=PATIENCE_S * 10)
    )
    assert identity.founders == ("n1",)


def test_three_nodes_find_each_other_by_a_name() -> None:
    addresses = [free_address() for _ in range(3)]
    settings = [
        Settings(node_id=f"n{number}", raft_bind=address, discover="dns", discover_dns_name="corvo", expect_nodes=3)
        for number, address in enumerate(addresses)
    ]
    # Whoever decides first ends, as a node does whose shards start then: the others hear it again from its shards.
    decided: dict[str, Identity] = {}
    shards: list[Running] = []

    def node(one: Settings) -> Identity:
        identity = hold(one, lambda: addresses)
        known = Welcome(one.node_id, one.raft_bind, 4, identity.cluster_id, identity.founders or (), identity.nodes)
        shards.append(Running(one.raft_bind, lambda _: known))
        decided[one.node_id] = identity
        return identity

    try:
        identities = hold_all([lambda one=one: node(one) for one in settings])
    finally:
        for shard in shards:
            shard.close()
    assert len({identity.cluster_id for identity in identities}) == 1
    nodes = {one.node_id: one.raft_bind for one in settings}
    assert all((identity.founders, identity.nodes) == (("n0", "n1", "n2"), nodes) for identity in identities)


def joining(*doors: str, **more: Any) -> Settings:
    return Settings(node_id="a", raft_bind=free_address(), join=",".join(doors), **more)


def test_a_node_joins_by_the_one_address_that_answers(running: Callable[..., str]) -> None:
    asked: list[Introduction] = []

    def answer(introduction: Introduction) -> Welcome:
        asked.append(introduction)
        return Welcome("b", "b:9400", 4, "c1", ("b",), {"b": "b:9400", "c": "c:9400"})

    settings = joining(free_address(), running(answer))
    assert hold(settings) == Identity("c1", "a", 4, founders=(), nodes={"b": "b:9400", "c": "c:9400"})
    assert asked[0] == Introduction("a", settings.raft_bind, 4)


def test_a_joiner_waits_until_the_other_has_a_cluster(running: Callable[..., str]) -> None:
    answers = [Welcome("b", "b:9400", 4), Welcome("b", "b:9400", 4), Welcome("b", "b:9400", 4, "c1")]
    address = running(lambda _: answers.pop(0) if len(answers) > 1 else answers[0])
    assert hold(joining(address)).cluster_id == "c1"


def test_nobody_answers_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "PROGRESS_S", 0.2)
    address = free_address()
    with (
        structlog.testing.capture_logs() as lines,
        pytest.raises(BootstrapFailed, match=r"for 0\.5 seconds: check --join"),
    ):
        hold(joining(address), patience=Patience(join=0.5))
    progress = [line for line in lines if line["event"] == "waiting for a node of the cluster to join"]
    assert 2 <= len(progress) <= 3
    assert progress[0]["silent"] == [address]


def test_too_few_are_found_by_name() -> None:
    settings = Settings(node_id="a", raft_bind=free_address(), discover="dns", discover_dns_name="x", expect_nodes=3)
    with (
        structlog.testing.capture_logs() as lines,
        pytest.raises(BootstrapFailed, match=r"1 of 3 expected nodes answered.*\(a\)"),
    ):
        hold(settings, lambda: [settings.raft_bind], Patience(listen=0.1, discover=0.5))
    assert [line["event"] for line in lines] == ["waiting for 2 of 3 nodes"]


def test_a_name_that_leads_away_needs_a_secret() -> None:
    settings = Settings(node_id="a", raft_bind=free_address(), discover="dns", discover_dns_name="x")
    with pytest.raises(
        BootstrapFailed, match=r"10\.1\.2\.3:9400 is none: give all nodes the same --cluster-secret-file"
    ):
        hold(settings, lambda: ["10.1.2.3:9400"])


def test_two_nodes_of_one_name_are_told_so() -> None:
    one, other = free_address(), free_address()
    first = Settings(node_id="a", raft_bind=one, join=other)
    second = Settings(node_id="a", raft_bind=other, join=one)
    told: list[str] = []

    def node(settings: Settings) -> None:
        try:
            hold(settings, patience=Patience(join=PATIENCE_S))
        except BootstrapFailed as error:
            told.append(str(error))
            is_told.set()

    # Whoever notices first ends; the other may be left with nobody to notice.
    is_told = Event()
    for settings in (first, second):
        Thread(target=node, args=(settings,), daemon=True).start()
    assert is_told.wait(PATIENCE_S)
    assert told[0].startswith("two nodes are called a, this one at ")


def test_a_lost_disk_is_refused_by_the_cluster_that_remembers(running: Callable[..., str]) -> None:
    address = running(lambda _: Welcome("b", "b:9400", 4, "c1", knows_you=True))
    with pytest.raises(BootstrapFailed, match="corvo cluster remove a"):
        hold(joining(address))


def test_a_port_in_use_is_said(running: Callable[..., str]) -> None:
    taken = running(lambda _: Welcome("b", "b:9400", 4))
    with pytest.raises(BootstrapFailed, match=r"cannot listen on .* address already in use"):
        hold(Settings(node_id="a", raft_bind=taken, join=free_address()))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (Settings(peers="node-1"), "is not name=host:port"),
        (Settings(join="b:9400"), "without a secret nodes use loopback addresses only, and :9400 is none"),
        (Settings(join="b:9400", cluster_secret_file="/nowhere/secret"), "/nowhere/secret cannot be read"),
        (Settings(join="b:9400", raft_bind="127.0.0.1:0"), "is not an address that others can reach"),
    ],
)
def test_settings_that_cannot_be(settings: Settings, sentence: str) -> None:
    with pytest.raises(BootstrapFailed, match=sentence):
        Bootstrap(settings, "host")


def test_a_look_up_that_hangs_or_fails_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answer = Event(), Event()

    def look_up(name: str, port: int, **options: Any) -> list[Any]:
        asked.set()
        answer.wait(PATIENCE_S)
        raise socket.gaierror("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    resolver = Resolver("corvo.example", 9400)
    assert asked.wait(PATIENCE_S)
    assert resolver() == []
    resolver.close()
    answer.set()


def test_a_name_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Event()
    paths = [("10.0.0.2", 9400), ("10.0.0.1", 9400), ("10.0.0.2", 9400), ("fd00::1", 9400, 0, 0)]

    class Watched(Resolver):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "_addresses" and value:
                seen.set()

    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", place) for place in paths])
    resolver = Watched("corvo.example", 9400)
    assert seen.wait(PATIENCE_S)
    resolver.close()
    assert resolver() == ["10.0.0.1:9400", "10.0.0.2:9400", "[fd00::1]:9400"]


# --- the process


def start(data_dir: Path, settings: Settings) -> "subprocess.Popen[str]":
    (data_dir / RUN).mkdir(parents=True, exist_ok=True)
    write_settings(settings)
    return subprocess.Popen(
        [sys.executable, "-m", "shards.group.bootstrap", "--run-dir", RUN],
        cwd=data_dir,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.system
def test_three_processes_write_one_identity_each(tmp_path: Path) -> None:
    nodes = {name: free_address() for name in ("n1", "n2", "n3")}
    text = ",".join(f"{name}={address}" for name, address in nodes.items())
    processes = [
        start(tmp_path / name, Settings(data_dir=str(tmp_path / name), node_id=name, raft_bind=address, peers=text))
        for name, address in nodes.items()
    ]
    for process in processes:
        _, complaint = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, complaint) == (0, "")
    identities = [read_identity(tmp_path / name) for name in nodes]
    assert {identity.cluster_id for identity in identities if identity} == {cluster_id_of(nodes, 4, None)}
    assert [identity.node_id for identity in identities if identity] == list(nodes)


@pytest.mark.system
def test_a_refusal_is_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    process = start(tmp_path, Settings(data_dir=str(tmp_path), node_id="a", join="b:9400", raft_bind="127.0.0.1:9400"))
    _, complaint = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert len(complaint.splitlines()) == 1
    assert "--cluster-secret-file" in complaint
    assert read_identity(tmp_path) is None


@pytest.mark.system
def test_an_identity_that_exists_is_left_alone(tmp_path: Path) -> None:
    there = Identity("c1", "a", 4)
    write_identity(tmp_path, there)
    process = start(tmp_path, Settings(data_dir=str(tmp_path), node_id="a", join="b:9400"))
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert read_identity(tmp_path) == there


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait(tmp_path: Path, number: signal.Signals) -> None:
    settings = Settings(data_dir=str(tmp_path), node_id="a", join=free_address(), raft_bind=free_address())
    process = start(tmp_path, settings)
    assert process.stdout is not None
    assert "waiting" in process.stdout.readline()
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == -number
    assert read_identity(tmp_path) is None
