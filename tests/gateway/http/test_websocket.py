"""Frames of a WebSocket: what the fast path takes, what it leaves to the server, however the bytes are cut."""

import asyncio
import os
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec
import pytest
import websockets.sync.client
from hypothesis import given
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.protocol import CLIENT, Protocol
from websockets.utils import apply_mask

from corvo.model.limits import BODY_BYTES_MAX
from gateway.http.servers import hypercorn
from gateway.http.websocket import FrameFastPath, Framer, framed
from tests.gateway.served import Served, a_server

MASK = b"\x01\x80\xfe\x37"


def sent(message: bytes, opcode: int = 2, fin: bool = True, bits: int = 0) -> bytes:
    """Also frames that `websockets` refuses to write."""
    size = len(message)
    length = (
        bytes([0x80 | size])
        if size < 126
        else b"\xfe" + size.to_bytes(2)
        if size < 1 << 16
        else b"\xff" + size.to_bytes(8)
    )
    return bytes([0x80 * fin | bits | opcode]) + length + MASK + apply_mask(message, MASK)


COMPRESSED = 0x40


def fed(framer: Framer, *pieces: bytes) -> list[tuple[bytes | None, bytes]]:
    return [item for piece in pieces for item in framer.feed(piece)]


@given(st.lists(st.binary(max_size=400), max_size=5), st.lists(st.integers(0, 2_000), max_size=6))
def test_frames_come_out_whole_however_the_bytes_are_cut(messages: list[bytes], cuts: list[int]) -> None:
    data = b"".join(sent(message) for message in messages)
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    pieces = [data[start:stop] for start, stop in pairwise(places)]

    assert fed(Framer(), *pieces) == [(message, b"") for message in messages]


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536, BODY_BYTES_MAX])
def test_a_frame_of_any_length_may_be_cut_in_its_head(size: int) -> None:
    message = bytes(size)
    data = sent(message)

    for cut in range(15):
        assert fed(Framer(), data[:cut], data[cut:]) == [(message, b"")]


def test_a_long_frame_may_come_byte_by_byte() -> None:
    message = bytes(70_000)
    data = sent(message) + sent(b"next")

    assert fed(Framer(), *(data[at : at + 1] for at in range(len(data)))) == [(message, b""), (b"next", b"")]


@given(st.lists(st.sampled_from([b"a", b"b" * 130, b"c" * 70_000]), min_size=1, max_size=4))
def test_what_is_sent_is_what_a_client_reads(messages: list[bytes]) -> None:
    client = Protocol(CLIENT)
    client.receive_data(b"".join(framed(message) for message in messages))

    frames = client.events_received()
    assert [(frame.opcode, bytes(frame.data)) for frame in frames if isinstance(frame, Frame)] == [
        (Opcode.BINARY, message) for message in messages
    ]


@pytest.mark.parametrize(
    "frame",
    [
        sent(b"ping", opcode=9),
        sent(b"\x03\xe8", opcode=8),
        sent(b"squeezed", bits=COMPRESSED),
        sent(b"squeezed", opcode=1, bits=COMPRESSED),
        sent(b"\xff", opcode=1),
        sent(b"", opcode=0),
    ],
    ids=["ping", "close", "compressed", "compressed text", "text that is none", "continues nothing"],
)
def test_what_is_not_plain_goes_to_the_server_as_it_came(frame: bytes) -> None:
    assert fed(Framer(), sent(b"one"), frame + sent(b"two")) == [(b"one", b""), (None, frame), (b"two", b"")]


@pytest.mark.parametrize("bits", [0, COMPRESSED])
def test_a_message_in_fragments_is_put_together_by_the_server(bits: int) -> None:
    parts = [
        sent(b"a", fin=False, bits=bits),
        sent(b"ping", opcode=9),
        sent(b"b", opcode=0, fin=False),
        sent(b"c", opcode=0),
    ]

    heard = fed(Framer(), *parts, sent(b"plain"))

    assert heard == [*((None, part) for part in parts), (b"plain", b"")]


BROKEN = {
    "unknown": sent(b"?", opcode=5),
    "not masked": b"\x82\x04bare",
    "second reserved bit": sent(b"?", bits=0x20),
    "third reserved bit": sent(b"?", bits=0x10),
    "long ping": sent(bytes(126), opcode=9),
    "ping in fragments": sent(b"?", opcode=9, fin=False),
}


@pytest.mark.parametrize("frame", BROKEN.values(), ids=BROKEN)
def test_from_a_broken_frame_on_everything_is_the_servers(frame: bytes) -> None:
    framer = Framer()

    assert fed(framer, sent(b"one"), frame + sent(b"two")) == [(b"one", b""), (None, frame + sent(b"two"))]
    assert fed(framer, sent(b"three")) == [(None, sent(b"three"))]


@given(st.binary(max_size=300), st.integers(1, 50))
def test_every_byte_is_taken_or_goes_to_the_server(noise: bytes, size: int) -> None:
    """Nothing raises and nothing is lost, but for half a frame at the end."""
    framer = Framer()
    heard = fed(framer, *(noise[at : at + size] for at in range(0, len(noise), size)))

    raw = b"".join(sent(message) if message is not None else raw for message, raw in heard)
    assert len(raw) + len(framer._buffer) == len(noise)


def test_from_a_frame_that_is_too_large_on_everything_is_the_servers() -> None:
    framer = Framer()
    head = b"\x82\xff" + (BODY_BYTES_MAX + 1).to_bytes(8)

    assert fed(framer, sent(b"one") + head) == [(b"one", b""), (None, head)]
    assert fed(framer, sent(b"two")) == [(None, sent(b"two"))]


def test_answers_of_one_tick_are_one_write() -> None:
    class Writer:
        written: list[bytes] = []
        write = written.append
        is_closing = staticmethod(lambda: False)

    async def test() -> None:
        fast_path = FrameFastPath(Writer())  # type: ignore[arg-type]
        fast_path.send(b"one")
        fast_path.send(b"two")
        await asyncio.sleep(0)
        fast_path.send(b"three")
        await asyncio.sleep(0)

    asyncio.run(test())
    assert Writer.written == [framed(b"one") + framed(b"two"), framed(b"three")]


def test_an_open_stream_is_pinged_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.http.websocket.PING_S", 0.001)
    written: asyncio.Queue[bytes] = asyncio.Queue()

    class Writer:
        write = written.put_nowait
        is_closing = staticmethod(lambda: False)

    async def test() -> None:
        fast_path = FrameFastPath(Writer())  # type: ignore[arg-type]
        fast_path.open(lambda message: None, lambda: asyncio.sleep(0))
        async with asyncio.timeout(5):
            assert [await written.get(), await written.get()] == [b"\x89\x00"] * 2
        fast_path.end()
        assert not any(not handle.cancelled() for handle in asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]

    asyncio.run(test())


# A real client and the real server


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with a_server(hypercorn.serve) as server:
        yield server


def ask(socket: Any, message: str | bytes | list[str]) -> Any:
    socket.send(message)
    return msgspec.json.decode(socket.recv(timeout=5))


@pytest.mark.system
@pytest.mark.parametrize("compression", [None, "deflate"])
def test_every_kind_of_message_is_answered(served: Served, compression: str | None) -> None:
    url = f"ws://127.0.0.1:{served.port}/api/v1/stream"
    large = "x" * 900 + os.urandom(50).hex()
    with websockets.sync.client.connect(url, compression=compression) as socket:
        plain = '{"id": 1, "enqueue": [{"queue": "mail", "payload": "é"}]}'
        assert ask(socket, plain)["enqueued"][0]["status"] == "pending"
        assert ask(socket, plain.encode())["id"] == 1
        assert ask(socket, [plain[:10], plain[10:30], plain[30:]])["id"] == 1
        assert ask(socket, msgspec.json.encode({"id": 2, "enqueue": [{"queue": "mail", "payload": large}]}))["id"] == 2
        assert socket.ping().wait(5)
        assert ask(socket, "{")["code"] == "PARSE_ERROR"


@pytest.mark.system
def test_a_frame_that_is_too_large_closes_the_stream(served: Served) -> None:
    url = f"ws://127.0.0.1:{served.port}/api/v1/stream"
    with websockets.sync.client.connect(url, compression=None, max_size=None) as socket:
        assert ask(socket, '{"id": 1}')["id"] == 1
        with pytest.raises(ConnectionClosed) as closed:
            socket.send(b"x" * (BODY_BYTES_MAX + 1))
            socket.recv(timeout=10)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009


@pytest.mark.system
@pytest.mark.parametrize(
    "frame",
    [sent(b"\xff\xfe", opcode=1), sent(b"?", bits=COMPRESSED), *BROKEN.values()],
    ids=["text that is none", "compressed without agreement", *BROKEN],
)
def test_a_frame_that_breaks_the_rules_closes_the_stream(served: Served, frame: bytes) -> None:
    url = f"ws://127.0.0.1:{served.port}/api/v1/stream"
    with websockets.sync.client.connect(url, compression=None) as socket:
        assert ask(socket, '{"id": 1}')["id"] == 1
        socket.socket.sendall(frame)
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=5)
