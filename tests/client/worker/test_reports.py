"""What becomes of a job when its handler ends."""

import asyncio
from concurrent.futures import Future
from typing import Any

import msgspec
import pytest

from corvo.client.worker import Cancel, Context, Continue, Discard, Hold, Retry, RunningJob, Snooze
from corvo.client.worker.context import StopReason
from corvo.client.worker.frames import AckOut, FailOut
from corvo.client.worker.reports import HandlerEnd, JobReport, handed_back, report_of

JOB = RunningJob("j", "q", 1, 3, lease_token=7)


def ended(
    value: Any = None,
    error: BaseException | None = None,
    stop: StopReason | None = None,
    saw: bool = False,
    interrupted: bool = False,
) -> JobReport | None:
    context = Context(JOB, lambda note: Future())
    if stop is not None:
        context.stop(stop)
    if saw:
        assert context.cancelled
    return report_of(context, HandlerEnd(value, error), interrupted, 5.0)


def item(report: JobReport | None) -> dict[str, Any]:
    assert report is not None
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(report.item))
    found.pop("backtrace", None)
    return found


ME = {"job_id": "j", "lease_token": 7}


def test_a_result_is_acknowledged() -> None:
    assert item(ended({"n": 1})) == {**ME, "result": {"n": 1}}
    assert item(ended()) == ME


def test_an_error_fails_the_attempt_with_its_kind_and_backtrace() -> None:
    try:
        raise ValueError("no such address")
    except ValueError as error:
        report = ended(error=error)

    assert item(report) == {**ME, "error": "ValueError: no such address"}
    assert report is not None and isinstance(report.item, FailOut)
    assert "test_reports.py" in (report.item.backtrace or "")


@pytest.mark.parametrize(
    ("outcome", "wanted"),
    [
        (Retry("90s"), {"error": "the handler asked for a retry", "retry_after_ms": 90_000}),
        (Retry(reason="busy"), {"error": "busy"}),
        (Snooze(2), {"error": "snoozed for 2000 ms", "snooze_ms": 2000}),
        (Discard("no such user"), {"error": "no such user", "retry": False}),
    ],
)
def test_outcomes_may_be_returned_or_raised(outcome: Any, wanted: dict[str, Any]) -> None:
    assert item(ended(outcome)) == item(ended(error=outcome)) == {**ME, **wanted}


def test_continue_sends_its_checkpoint_first_and_uses_no_attempt() -> None:
    report = ended(Continue({"page": 3}, after="1m"))

    assert report is not None
    assert (report.checkpoint, item(report)["snooze_ms"]) == (b'{"page":3}', 60_000)
    assert "TypeError" in item(ended(Continue([1])))["error"]


def test_hold_and_cancel_are_requests_before_the_report() -> None:
    assert ended(Hold("is this address right?")) == JobReport(None, action="hold", reason="is this address right?")
    report = ended(Cancel("not needed"))
    assert report is not None and report.action == "cancel"
    assert item(report)["error"] == "not needed"


def test_a_result_that_is_no_json_fails() -> None:
    assert "the result cannot be stored" in item(ended(object()))["error"]


def test_a_lost_lease_is_not_reported() -> None:
    assert ended(1, stop="lease_lost") is None
    assert ended(error=asyncio.CancelledError(), stop="lease_lost", interrupted=True) is None


HANDED_BACK = {**ME, "error": "worker_shutdown", "snooze_ms": 0}


def test_a_job_that_stops_for_a_shutdown_is_handed_back_and_uses_no_attempt() -> None:
    assert item(ended(stop="shutdown", saw=True)) == HANDED_BACK
    assert item(ended(error=asyncio.CancelledError(), stop="shutdown", interrupted=True)) == HANDED_BACK
    assert item(handed_back(Context(JOB, lambda note: Future()))) == HANDED_BACK


def test_a_job_that_ends_during_a_shutdown_has_ended() -> None:
    assert item(ended(stop="shutdown")) == ME
    assert item(ended({"n": 1}, stop="shutdown", saw=True)) == {**ME, "result": {"n": 1}}
    assert item(ended(error=ValueError("x"), stop="shutdown"))["error"] == "ValueError: x"


def test_a_cancelled_job_fails_which_leaves_it_cancelled_unless_it_had_a_result() -> None:
    assert item(ended(stop="cancel", saw=True))["error"] == "cancelled"
    assert item(ended(error=asyncio.CancelledError(), stop="cancel", interrupted=True))["error"] == "cancelled"
    assert item(ended(5, stop="cancel", saw=True)) == {**ME, "result": 5}


def test_a_time_limit_is_named() -> None:
    report = ended(error=asyncio.CancelledError(), stop="time_limit", interrupted=True)

    assert item(report) == {**ME, "error": "the time limit of 5 s is over"}


def test_long_errors_are_cut() -> None:
    report = ended(error=ValueError("x" * 100_000))

    assert report is not None and isinstance(report.item, FailOut)
    assert (len(report.item.error), len(report.item.backtrace or "")) == (8 * 1024, 64 * 1024)


def test_an_ack_is_an_ack() -> None:
    report = ended()
    assert report is not None and isinstance(report.item, AckOut)
