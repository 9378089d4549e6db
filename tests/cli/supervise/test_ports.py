"""Free ports, several in a row."""

import random
import socket
from pathlib import Path

import pytest

from corvo.cli.supervise import ports
from corvo.cli.supervise.ports import NoPorts, free_row, listen_once


def test_a_row_of_ports_is_free_and_below_those_of_outgoing_connections() -> None:
    first = free_row("127.0.0.1", 12, random.Random())

    assert first >= ports.PORT_MIN and first + 12 <= ports._ephemeral_first()
    assert [listen_once("127.0.0.1", first + step) for step in range(12)] == [first + step for step in range(12)]


def test_a_port_in_the_middle_that_is_taken_moves_the_row_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    first = free_row("127.0.0.1", 8, random.Random())
    with socket.socket() as other:
        other.bind(("127.0.0.1", first + 1))
        other.listen(1)
        monkeypatch.setattr(ports, "PORT_MIN", first)
        monkeypatch.setattr(ports, "_ephemeral_first", lambda: first + 8)
        assert free_row("127.0.0.1", 4, random.Random()) >= first + 2


def test_rows_that_are_not_there_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "PORT_MIN", 65_530)

    with pytest.raises(NoPorts, match="no 20 ports in a row are free"):
        free_row("127.0.0.1", 20, random.Random())


def test_a_kernel_that_does_not_tell_its_range_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_EPHEMERAL_RANGE", tmp_path / "none")

    assert ports._ephemeral_first() == 32_768
