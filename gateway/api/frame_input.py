"""Decodes the bytes of a stream into a frame.

A frame is decoded as a whole. If that fails, it is decoded item by item: an invalid item gets an error as its result,
and the other items are served. A frame of the wrong shape is refused as a whole, under its id if that is readable.
"""

import json
from collections.abc import Callable
from types import ModuleType
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from corvo.endpoint import Body
from corvo.model.errors import Refusal
from corvo.model.json_input import decode_body, validation_refusal
from corvo.model.limits import FETCH_COUNT_MAX, HEARTBEAT_JOBS_MAX, JOBS_PER_REQUEST_MAX
from corvo.ops.jobs.ack import AckBatchItem
from corvo.ops.jobs.enqueue import EnqueueBody
from corvo.ops.jobs.fail import FailBatchItem
from corvo.ops.jobs.heartbeat import HeartbeatJob
from gateway.api.frames import Frame, FrameFetch, FrameRefused

T = TypeVar("T")

_EnqueuesMax = Meta(max_length=JOBS_PER_REQUEST_MAX)
_ClaimsMax = Meta(max_length=FETCH_COUNT_MAX)
_HeartbeatsMax = Meta(max_length=HEARTBEAT_JOBS_MAX)


class FrameBody(Body):
    """A frame whose items are all valid."""

    id: int | str
    enqueue: Annotated[list[EnqueueBody], _EnqueuesMax] | UnsetType = UNSET
    ack: Annotated[list[AckBatchItem], _ClaimsMax] | UnsetType = UNSET
    fail: Annotated[list[FailBatchItem], _ClaimsMax] | UnsetType = UNSET
    heartbeat: Annotated[dict[str, HeartbeatJob], _HeartbeatsMax] | UnsetType = UNSET
    fetch: FrameFetch | UnsetType = UNSET


class _Outline(Body):
    """The same frame with undecoded items."""

    id: int | str
    enqueue: Annotated[list[msgspec.Raw], _EnqueuesMax] | UnsetType = UNSET
    ack: Annotated[list[msgspec.Raw], _ClaimsMax] | UnsetType = UNSET
    fail: Annotated[list[msgspec.Raw], _ClaimsMax] | UnsetType = UNSET
    heartbeat: Annotated[dict[str, msgspec.Raw], _HeartbeatsMax] | UnsetType = UNSET
    fetch: msgspec.Raw | UnsetType = UNSET


class _IdOnly(msgspec.Struct):
    id: int | str


class Codec:
    """The encoding of a subprotocol. Items are validated as JSON, because payloads are stored as JSON."""

    def __init__(
        self, format_: ModuleType, to_json: Callable[[bytes], bytes], from_json: Callable[[bytes], bytes]
    ) -> None:
        self.to_json = to_json
        self.from_json = from_json
        self.decode_outline: Callable[[bytes], _Outline] = format_.Decoder(_Outline).decode
        self.decode_id: Callable[[bytes], _IdOnly] = format_.Decoder(_IdOnly).decode


def _msgpack_to_json(raw: bytes) -> bytes:
    try:
        return json.dumps(msgspec.msgpack.decode(raw), allow_nan=False, separators=(",", ":")).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise Refusal("PARSE_ERROR", f"this MessagePack cannot be converted to JSON: {error}") from None


def _json_to_msgpack(raw: bytes) -> bytes:
    return msgspec.msgpack.encode(msgspec.json.decode(raw))


CODECS = {
    "corvo.json.v1": Codec(msgspec.json, lambda raw: raw, lambda raw: raw),
    "corvo.msgpack.v1": Codec(msgspec.msgpack, _msgpack_to_json, _json_to_msgpack),
}

_frame_decoder = msgspec.json.Decoder(FrameBody)
_enqueue_decoder = msgspec.json.Decoder(EnqueueBody)
_ack_decoder = msgspec.json.Decoder(AckBatchItem)
_fail_decoder = msgspec.json.Decoder(FailBatchItem)
_heartbeat_decoder = msgspec.json.Decoder(HeartbeatJob)
_fetch_decoder = msgspec.json.Decoder(FrameFetch)


def read_frame(codec: Codec, raw: bytes) -> Frame | FrameRefused:
    try:
        body = decode_body(_frame_decoder, codec.to_json(raw))
    except Refusal as refusal:
        return _read_items(codec, raw, refusal)
    return Frame(body.id, body.enqueue, body.ack, body.fail, body.heartbeat, body.fetch)


def _read_items(codec: Codec, raw: bytes, why: Refusal) -> Frame | FrameRefused:
    """Decodes a frame with an error in it; `why` is the error of the whole-frame decoder."""
    try:
        outline = codec.decode_outline(raw)
    except msgspec.ValidationError as error:
        frame_id = _read_id(codec, raw)
        shape = why if frame_id is None else validation_refusal(error, _Outline)
        return FrameRefused(frame_id, shape.code, shape.message)
    except (ValueError, RecursionError, OverflowError):  # msgspec's errors are ValueErrors
        return FrameRefused(_read_id(codec, raw), why.code, why.message)

    def each(raws: list[msgspec.Raw] | UnsetType, decoder: msgspec.json.Decoder[T], kind: str) -> Any:
        if raws is UNSET:
            return UNSET
        return [_read_item(codec, item, decoder, f"{kind}[{number}]") for number, item in enumerate(raws)]

    frame = Frame(
        outline.id,
        each(outline.enqueue, _enqueue_decoder, "enqueue"),
        each(outline.ack, _ack_decoder, "ack"),
        each(outline.fail, _fail_decoder, "fail"),
    )
    if outline.heartbeat is not UNSET:
        beats: dict[str, Any] = {
            job_id: _read_item(codec, item, _heartbeat_decoder, f"heartbeat.{job_id}")
            for job_id, item in outline.heartbeat.items()
        }
        frame.heartbeat = beats
    if outline.fetch is not UNSET:
        frame.fetch = _read_item(codec, outline.fetch, _fetch_decoder, "fetch")
    return frame


def _read_id(codec: Codec, raw: bytes) -> int | str | None:
    try:
        return codec.decode_id(raw).id
    except (ValueError, RecursionError, OverflowError):
        return None


def _read_item(codec: Codec, raw: msgspec.Raw, decoder: msgspec.json.Decoder[T], at: str) -> T | Refusal:
    try:
        return decode_body(decoder, codec.to_json(bytes(raw)))
    except Refusal as refusal:
        field = refusal.field
        if field is None:
            return Refusal(refusal.code, f"{at}: {refusal.message}", at)
        path = at if field == "body" else f"{at}.{field}"
        return Refusal(refusal.code, path + refusal.message.removeprefix(field), path)
