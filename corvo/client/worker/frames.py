"""What a worker sends over the stream and what it gets back. Pure.

The server's side is gateway/api/frames.py. Answers ignore what they do not know.
"""

import msgspec
from msgspec import UNSET, Raw, UnsetType

from .context import RunningJob

REPORTS_PER_FRAME = 512  # the server's bounds of one frame
BEATS_PER_FRAME = 1000
JOBS_PER_FETCH = 512
ERROR_CHARS_MAX = 8 * 1024
BACKTRACE_CHARS_MAX = 64 * 1024


class AckOut(msgspec.Struct, omit_defaults=True):
    job_id: str
    lease_token: int
    result: Raw | UnsetType = UNSET


class FailOut(msgspec.Struct, omit_defaults=True):
    job_id: str
    lease_token: int
    error: str = ""
    backtrace: str | None = None
    retry: bool = True
    retry_after_ms: int | None = None
    snooze_ms: int | None = None


class BeatOut(msgspec.Struct, omit_defaults=True):
    lease_token: int
    progress: Raw | UnsetType = UNSET
    checkpoint: Raw | UnsetType = UNSET
    usage: Raw | UnsetType = UNSET


class FetchOut(msgspec.Struct):
    queues: list[str]
    worker_id: str
    hostname: str
    count: int
    wait_ms: int
    lease_duration: float
    pool_size: int
    version: str


class FrameOut(msgspec.Struct, omit_defaults=True):
    id: int
    ack: list[AckOut] | UnsetType = UNSET
    fail: list[FailOut] | UnsetType = UNSET
    heartbeat: dict[str, BeatOut] | UnsetType = UNSET
    fetch: FetchOut | UnsetType = UNSET


class ItemReply(msgspec.Struct):
    status: str = ""
    error: str = ""
    code: str = ""


class FrameReply(msgspec.Struct):
    """Lists that are not there: the frame was refused as a whole, or its fetch was."""

    id: int | str | None = None
    acked: list[ItemReply] | UnsetType = UNSET
    failed: list[ItemReply] | UnsetType = UNSET
    heartbeat: dict[str, ItemReply] | UnsetType = UNSET
    jobs: list[RunningJob] | UnsetType = UNSET
    code: str = ""
    error: str = ""
    retry_after_ms: int = 0


encode_frame = msgspec.json.Encoder().encode
decode_reply = msgspec.json.Decoder(FrameReply).decode
