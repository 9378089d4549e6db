"""The hand between two nodes: what passes, what a cut holds back, and what comes of it when it is healed."""

import socket
import threading
from collections.abc import Iterator

import pytest

from chaos.ports import HOST, free_ports
from chaos.proxy import Proxies
from corvo.runtime.addresses import split_address

SHARDS = 2
PATIENCE_S = 10.0
SILENCE_S = 0.2


class Echo:
    """Stands for a node: every shard answers with what it hears."""

    def __init__(self, port: int) -> None:
        self.listeners = [socket.create_server((HOST, port + shard)) for shard in range(SHARDS)]
        for listener in self.listeners:
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    @staticmethod
    def _answer(connection: socket.socket) -> None:
        with connection:
            while heard := connection.recv(1024):
                connection.sendall(heard)

    def close(self) -> None:
        for listener in self.listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()


@pytest.fixture
def proxies() -> Iterator[Proxies]:
    ports = free_ports(SHARDS, 2)
    echoes = [Echo(port) for port in ports]
    proxies = Proxies({"node-1": f"{HOST}:{ports[0]}", "node-2": f"{HOST}:{ports[1]}"}, SHARDS)
    yield proxies
    proxies.close()
    for echo in echoes:
        echo.close()


def connect(proxies: Proxies, near: str, far: str, shard: int = 0) -> socket.socket:
    host, port = split_address(proxies.addresses_for(near)[far])
    return socket.create_connection((host, port + shard), PATIENCE_S)


def is_silent(connection: socket.socket) -> bool:
    connection.settimeout(SILENCE_S)
    try:
        connection.recv(1024)
        return False
    except TimeoutError:
        return True
    finally:
        connection.settimeout(PATIENCE_S)


def test_every_shard_is_reached_through_the_gate(proxies: Proxies) -> None:
    for shard in range(SHARDS):
        with connect(proxies, "node-1", "node-2", shard) as connection:
            connection.sendall(b"heartbeat")
            assert connection.recv(1024) == b"heartbeat"


def test_a_cut_holds_back_what_is_sent_and_healing_lets_it_through(proxies: Proxies) -> None:
    with connect(proxies, "node-1", "node-2") as connection:
        connection.sendall(b"before")
        assert connection.recv(1024) == b"before"

        proxies.cut("node-1", "node-2")
        connection.sendall(b"during")
        assert is_silent(connection)

        proxies.heal()
        assert connection.recv(1024) == b"during"


def test_a_connection_made_during_a_cut_hangs_until_it_is_healed(proxies: Proxies) -> None:
    proxies.cut("node-1", "node-2")
    with connect(proxies, "node-1", "node-2") as connection:
        connection.sendall(b"hello")
        assert is_silent(connection)

        proxies.heal()
        assert connection.recv(1024) == b"hello"


def test_a_cut_leaves_the_other_direction_alone(proxies: Proxies) -> None:
    proxies.cut("node-1", "node-2")

    with connect(proxies, "node-2", "node-1") as connection:
        connection.sendall(b"heartbeat")
        assert connection.recv(1024) == b"heartbeat"


def test_a_node_that_is_away_hangs_up() -> None:
    nobody = Proxies({"node-1": f"{HOST}:{free_ports(1, 1)[0]}", "node-2": f"{HOST}:{free_ports(1, 1)[0]}"}, 1)
    try:
        with connect(nobody, "node-1", "node-2") as connection:
            assert connection.recv(1024) == b""
    finally:
        nobody.close()


def test_closing_ends_a_cut_and_can_be_repeated(proxies: Proxies) -> None:
    with connect(proxies, "node-1", "node-2") as connection:
        proxies.cut("node-1", "node-2")
        connection.sendall(b"lost")

        proxies.close()
        proxies.close()

        with pytest.raises(ConnectionRefusedError):
            connect(proxies, "node-1", "node-2")


def test_blocks_of_ports_do_not_overlap() -> None:
    blocks = free_ports(4, 6)

    ports = [first + number for first in blocks for number in range(4)]
    assert len(set(ports)) == 24
