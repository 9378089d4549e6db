"""Frames of WebSocket. How the bytes are cut into pieces changes nothing; nothing is lost; and a message that the fast
path takes is the one that the server's own parser (wsproto) finds there."""

from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, TextMessage
from wsproto.frame_protocol import Opcode
from wsproto.utilities import RemoteProtocolError

from gateway.http.websocket import Framer

_MASK = b"\x01\x02\x03\x04"


def masked(first: int, message: bytes) -> bytes:
    size = len(message)
    head = bytes([first]) + (bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2))
    return head + _MASK + bytes(byte ^ _MASK[place % 4] for place, byte in enumerate(message))


def beginnings() -> list[bytes]:
    text, binary, final = 0x81, 0x82, 0x80
    return [
        masked(text, b'{"id":1}'),
        masked(binary, b"\x81\xa2id\x01") + masked(text, b"x" * 200),
        masked(0x01, b"a") + masked(0x89, b"ping") + masked(final, b"b"),
        masked(0x88, b"\x03\xe8bye"),
        masked(0xC1, b"\xaa\x56\x4a\x05\x00"),  # compressed
        masked(text, b"\xff\xfe"),
        b"\x81\xff\x7f" + b"\xff" * 7,  # announces 2^63 bytes
        b"\x81\x05hello",  # not masked
        masked(0xF1, b""),
    ]


def play(data: bytes) -> None:
    cut, data = (data[0] if data else 0), data[1:]
    at_once = Framer()
    whole = list(at_once.feed(data))
    framer = Framer()
    pieces = [found for place in range(0, len(data), cut + 1) for found in framer.feed(data[place : place + cut + 1])]
    taken = [message for message, _ in whole if message is not None]
    assert taken == [message for message, _ in pieces if message is not None]
    assert b"".join(raw for _, raw in whole) == b"".join(raw for _, raw in pieces)
    is_complete = not at_once._buffer  # wsproto judges what has come of a frame, the fast path waits for the rest
    if is_complete and all(message is not None for message, _ in whole):
        assert taken == _by_the_server(data), data


def _by_the_server(data: bytes) -> list[bytes]:
    connection = Connection(ConnectionType.SERVER)
    connection.receive_data(data)
    found: list[bytes] = []
    part = b""
    try:
        for event in connection.events():
            assert isinstance(event, TextMessage | BytesMessage), event
            part += event.data.encode() if isinstance(event, TextMessage) else bytes(event.data)
            if event.message_finished:
                found.append(part)
                part = b""
    except RemoteProtocolError as error:
        raise AssertionError(f"the server refuses what the fast path took: {error}") from error
    assert Opcode.TEXT == 1
    return found
