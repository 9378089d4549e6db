"""Frames of the stream. Whatever arrives, the decoder answers with a frame or a refusal; the same frame means the same
in both encodings; and a tenant's frame names nothing outside its namespace."""

import json
from typing import Any

import msgspec

from corvo.endpoint import PlanContext
from corvo.model.errors import STATUS, Refusal
from corvo.model.name_fields import queues_in
from corvo.ops.jobs.enqueue import EnqueueBody
from gateway.api.frame_access import enter_frame
from gateway.api.frame_input import CODECS, read_frame
from gateway.api.frames import Frame, FramePlan, FrameRefused, items_of
from tests.support.access import a_principal
from tests.support.builders import an_asking

JSON, MSGPACK = CODECS["corvo.json.v1"], CODECS["corvo.msgpack.v1"]
CONTEXT: PlanContext = an_asking().within("acme")
SCOPED = ("mail.*",)


def beginnings() -> list[bytes]:
    whole: dict[str, Any] = {
        "id": 1,
        "enqueue": [
            {"queue": "mail", "payload": {"to": "a@b.c"}, "tags": {"k": "v"}, "unique_key": "u", "depends_on": ["x"]},
            {"queue": "mail.in", "chain": {"steps": [{"queue": "next"}]}, "batch_id": "b", "delay_ms": 5},
            {"queue": "a|b"},
        ],
        "ack": [{"job_id": "s00_job_1", "lease_token": 1, "result": {"a": None}}],
        "fail": [{"job_id": "s00_job_1", "lease_token": 1, "error": "e", "backtrace": "b"}],
        "heartbeat": {"s00_job_1": {"lease_token": 1, "progress": {"percent": 5}}},
        "fetch": {"queues": ["mail", "mail.in"], "worker_id": "w", "count": 2, "weights": {"mail": 2}},
    }
    frames = [whole, *({"id": "x", part: whole[part]} for part in whole if part != "id")]
    return [
        *(b"j" + msgspec.json.encode(frame) for frame in frames),
        *(b"m" + msgspec.msgpack.encode(frame) for frame in frames),
        b'j{"id":1,"enqueue":[{"queue":"mail","payload":' + b"[" * 90 + b"]" * 90 + b"}]}",
        b'j{"id":1,"enqueue":[{"queue":"mail","payload":1e400},{"queue":"mail","payload":"\\ud800"}]}',
    ]


def play(data: bytes) -> None:
    codec, raw = (MSGPACK if data[:1] == b"m" else JSON), data[1:]
    frame = read_frame(codec, raw)
    if isinstance(frame, FrameRefused):
        assert frame.code in STATUS and frame.error, frame
        msgspec.json.encode(frame)  # a refusal is sent, so it can be written
        msgspec.msgpack.encode(frame)
        return
    _check_planned(frame)
    again = read_frame(codec, raw)
    assert isinstance(again, Frame)
    if codec is JSON:
        _check_same(again, raw)
    _check_entered(again)


def _check_planned(frame: Frame) -> None:
    """A frame that was read can be planned: each item has its result."""
    plan = FramePlan(CONTEXT, frame)
    assert len(plan.calls) <= 5 * 4 and items_of(frame) >= 0


def _check_same(frame: Frame, raw: bytes) -> None:
    if _differs_as_messagepack(raw):
        return  # MessagePack made from it has one value for a key, and no invalid text
    try:
        other = read_frame(MSGPACK, msgspec.msgpack.encode(msgspec.json.decode(raw)))
    except (ValueError, OverflowError):  # a number, or a surrogate, that MessagePack cannot have
        return
    if isinstance(other, FrameRefused):
        return  # an item that JSON alone can express, such as an integer of 70 digits
    assert _shape(frame) == _shape(other), (frame, other)


def _differs_as_messagepack(raw: bytes) -> bool:
    def pairs(found: list[tuple[str, Any]]) -> None:
        if len({key for key, _ in found}) < len(found):
            raise _KeyTwiceError

    try:
        json.loads(raw, object_pairs_hook=pairs)
    except (_KeyTwiceError, UnicodeDecodeError):
        return True
    return False


class _KeyTwiceError(Exception):
    pass


def _shape(frame: Frame) -> Any:
    def each(part: Any) -> Any:
        return part if isinstance(part, msgspec.UnsetType) else [isinstance(item, Refusal) for item in part]

    return frame.id, each(frame.enqueue), each(frame.ack), each(frame.fail)


def _check_entered(frame: Frame) -> None:
    enter_frame(frame, a_principal("worker", "acme", SCOPED))
    named = [] if isinstance(frame.enqueue, msgspec.UnsetType) else list(frame.enqueue)
    if not isinstance(frame.fetch, msgspec.UnsetType):
        named.append(frame.fetch)  # type: ignore[arg-type]
    for item in named:
        for queue in () if isinstance(item, Refusal) else queues_in(item):
            assert queue.startswith("acme|mail.") and queue.count("|") == 1, queue
        if isinstance(item, EnqueueBody):
            assert not item.queue.endswith("|")
