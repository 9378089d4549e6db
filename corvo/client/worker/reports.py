"""From the end of a handler to the report that the server gets. Pure."""

import asyncio
import traceback
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Raw

from .arguments import to_json
from .context import Context
from .frames import BACKTRACE_CHARS_MAX, ERROR_CHARS_MAX, AckOut, FailOut
from .outcomes import Cancel, Continue, Discard, HandlerOutcome, Hold, Retry, Snooze

SHUTDOWN = "worker_shutdown"  # the error of a job that is handed back; the documents name it
REASON_CHARS_MAX = 256


class JobReport(msgspec.Struct):
    """`item` goes into a frame. Before it: the checkpoint, by a heartbeat; then the action, by a request of its own."""

    item: AckOut | FailOut | None  # None: the action says all
    checkpoint: bytes = b""
    action: Literal["", "hold", "cancel"] = ""
    reason: str = ""


class HandlerEnd(NamedTuple):
    """What a handler returned or raised; or the report itself, if another process made it."""

    value: Any = None
    error: BaseException | None = None
    report: JobReport | None = None


def report_of(context: Context, ended: HandlerEnd, was_interrupted: bool, time_limit: float | None) -> JobReport | None:
    """None: the lease is lost, and nobody waits for a report. Interrupted: the worker made the handler stop, so what it
    raised is an effect of that."""
    job = context.job
    reason = context.stop_reason
    if reason == "lease_lost":
        return None
    found = ended.error if ended.error is not None else ended.value
    if ended.report is not None:
        return ended.report
    if isinstance(found, HandlerOutcome):
        return _chosen(context, found)
    is_unfinished = ended.value is None and (
        context.saw_stop if ended.error is None else was_interrupted or isinstance(ended.error, asyncio.CancelledError)
    )
    if is_unfinished and reason is not None:
        if reason == "shutdown":
            return handed_back(context)
        told = "cancelled" if reason == "cancel" else f"the time limit of {time_limit or 0:g} s is over"
        return JobReport(FailOut(job.job_id, job.lease_token, told))
    if ended.error is not None:
        return failure(context, ended.error)
    if ended.value is None:
        return JobReport(AckOut(job.job_id, job.lease_token))
    try:
        result = Raw(to_json(ended.value))
    except (TypeError, ValueError, RecursionError) as error:
        return failure(context, TypeError(f"the result cannot be stored: {error}"))
    return JobReport(AckOut(job.job_id, job.lease_token, result))


def handed_back(context: Context) -> JobReport:
    """Somebody else runs it, at once: a shutdown is no failure and uses no attempt."""
    return JobReport(FailOut(context.job.job_id, context.job.lease_token, SHUTDOWN, snooze_ms=0))


def failure(context: Context, error: BaseException) -> JobReport:
    kind, text = type(error).__name__, str(error)
    told = f"{kind}: {text}" if text else kind
    backtrace = "".join(traceback.format_exception(error))[-BACKTRACE_CHARS_MAX:]
    return JobReport(FailOut(context.job.job_id, context.job.lease_token, told[:ERROR_CHARS_MAX], backtrace))


def refused_report(item: AckOut | FailOut, told: str) -> JobReport | None:
    """Instead of a report that the server will never take, such as a result that is too large. None: no report will
    do, and the lease ends by itself."""
    if isinstance(item, FailOut):
        return None
    return JobReport(FailOut(item.job_id, item.lease_token, f"the server refused the result: {told}"[:ERROR_CHARS_MAX]))


def _chosen(context: Context, outcome: HandlerOutcome) -> JobReport:
    job = context.job
    fail = FailOut(job.job_id, job.lease_token, str(outcome)[:ERROR_CHARS_MAX])
    match outcome:
        case Snooze():
            fail.snooze_ms = outcome.for_ms
        case Continue():
            checkpoint = _object_or_none(outcome.checkpoint)
            if checkpoint is None:
                return failure(context, TypeError("a Continue takes an object with names, such as a dict"))
            fail.snooze_ms = outcome.after_ms
            return JobReport(fail, checkpoint)
        case Discard():
            fail.retry = False
        case Retry():
            fail.retry_after_ms = outcome.after_ms
        case Cancel():
            return JobReport(fail, action="cancel")
        case Hold():
            return JobReport(None, action="hold", reason=outcome.prompt[:REASON_CHARS_MAX])
        case _:
            return failure(context, outcome)
    return JobReport(fail)


def _object_or_none(value: Any) -> bytes | None:
    try:
        raw = to_json(value)
    except (TypeError, ValueError, RecursionError):
        return None
    return raw if raw.startswith(b"{") else None
