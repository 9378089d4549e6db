"""The ledger against a model of the server: whatever breaks, each report counts once."""

from concurrent.futures import Future
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corvo.client.worker import NoteRefused
from corvo.client.worker.context import Note
from corvo.client.worker.frames import AckOut, FailOut, FrameOut, FrameReply, ItemReply, decode_reply
from corvo.client.worker.lanes import Lane
from corvo.client.worker.ledger import Held, Ledger
from corvo.client.worker.reports import JobReport

LEASE_S = 30.0


class ModelServer:
    """Claims, acks and fails by lease token, as the server's rules do. `settled` counts reports that took effect."""

    def __init__(self, jobs: int) -> None:
        self.pending = [f"j{number}" for number in range(jobs)]
        self.active: dict[str, int] = {}
        self.settled: dict[str, list[str]] = {f"j{number}": [] for number in range(jobs)}
        self.checkpoints: dict[str, bytes] = {}
        self.token = 0

    def serve(self, frame: FrameOut) -> FrameReply:
        reply: dict[str, Any] = {"id": frame.id}
        if isinstance(frame.ack, list):
            reply["acked"] = [self._settle(ack, "ack") for ack in frame.ack]
        if isinstance(frame.fail, list):
            reply["failed"] = [self._settle(fail, "fail") for fail in frame.fail]
        if isinstance(frame.heartbeat, dict):
            reply["heartbeat"] = {name: self._beat(name, beat) for name, beat in frame.heartbeat.items()}
        if not isinstance(frame.fetch, msgspec.UnsetType):
            claimed = [self.pending.pop(0) for _ in range(min(frame.fetch.count, len(self.pending)))]
            reply["jobs"] = [self._claim(name) for name in claimed]
        return decode_reply(msgspec.json.encode(reply))

    def end_lease(self, name: str) -> None:
        del self.active[name]
        self.pending.append(name)

    def _claim(self, name: str) -> dict[str, Any]:
        self.token += 1
        self.active[name] = self.token
        return {"job_id": name, "queue": "q", "attempt": 1, "max_retries": 3, "payload": {}, "lease_token": self.token}

    def _settle(self, item: AckOut | FailOut, what: str) -> dict[str, str]:
        if self.active.get(item.job_id) == item.lease_token:
            del self.active[item.job_id]
            self.settled[item.job_id].append(what)
            return {"status": "ok"}
        return {"code": "LEASE_LOST", "error": "its lease is over"}

    def _beat(self, name: str, beat: Any) -> dict[str, str]:
        if self.active.get(name) != beat.lease_token:
            return {"status": "lease_lost"}
        if isinstance(beat.checkpoint, msgspec.Raw):
            self.checkpoints[name] = bytes(beat.checkpoint)
        return {"status": "ok"}


def make(slots: int = 10) -> Ledger:
    return Ledger([Lane(["q"], slots)], "w", "h", LEASE_S)


def exchange(ledger: Ledger, server: ModelServer, now: float = 0.0) -> list[Held]:
    claimed: list[Held] = []
    while frames := list(ledger.frames(now, 0)):
        got = 0
        for frame in frames:
            settled = ledger.answered(server.serve(frame), now)
            claimed += settled.claimed
            got += len(settled.claimed)
        if not got and all(not isinstance(frame.fetch, msgspec.UnsetType) for frame in frames):
            break
    return claimed


def ack(held: Held) -> JobReport:
    return JobReport(AckOut(held.job.job_id, held.job.lease_token))


def fail(held: Held, **more: Any) -> JobReport:
    return JobReport(FailOut(held.job.job_id, held.job.lease_token, "no"), **more)


def finish(ledger: Ledger, held: Held, report: JobReport | None) -> None:
    held.lane.ended(0.1)
    ledger.report(held, report)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_each_report_counts_once_whatever_is_lost(data: st.DataObject) -> None:
    """Connections break with and without their frames having arrived, and leases end at any time."""
    server, ledger = ModelServer(12), make(5)
    running: list[Held] = []
    sent: list[FrameOut] = []
    told: dict[str, set[str]] = {name: set() for name in server.settled}

    def end(held: Held, what: str) -> None:
        told[held.job.job_id].add(what)
        finish(ledger, held, ack(held) if what == "ack" else fail(held))

    for step in range(data.draw(st.integers(5, 40))):
        sent += ledger.frames(float(step), 0)
        if sent and data.draw(st.booleans(), "an answer arrives"):
            frame = sent.pop(data.draw(st.integers(0, len(sent) - 1)))
            running += ledger.answered(server.serve(frame), float(step)).claimed
        if data.draw(st.integers(0, 5), "the connection breaks") == 0:
            for frame in sent:  # some of them arrived, and their answers did not
                if data.draw(st.booleans()):
                    server.serve(frame)
            sent.clear()
            ledger.lost_connection()
        if server.active and data.draw(st.integers(0, 5), "a lease ends") == 0:
            server.end_lease(data.draw(st.sampled_from(sorted(server.active))))
        if data.draw(st.integers(0, 5), "heartbeats are due") == 0:
            ledger.renew(float(step) + LEASE_S)
        if running and data.draw(st.booleans(), "a handler ends"):
            held = running.pop()
            if data.draw(st.booleans()):
                ledger.note(held, Note(checkpoint=b'{"at":1}'), Future())
            end(held, data.draw(st.sampled_from(["ack", "fail"])))
    for frame in sent:
        running += ledger.answered(server.serve(frame), 100.0).claimed
    for _ in range(3):
        running += exchange(ledger, server, 100.0)
        while running:
            for held in running:
                end(held, "ack")
            running = exchange(ledger, server, 100.0)
        for name in list(server.active):  # claims whose answer was lost
            server.end_lease(name)

    assert ledger.held == {} and ledger.unsettled == 0
    assert [len(found) for found in server.settled.values()] == [1] * 12
    assert all(set(found) <= told[name] for name, found in server.settled.items())


def test_a_checkpoint_arrives_before_the_report() -> None:
    server, ledger = ModelServer(1), make()
    (held,) = exchange(ledger, server)
    finish(ledger, held, fail(held, checkpoint=b'{"page":3}'))

    first = list(ledger.frames(0.0, 0))
    assert [isinstance(frame.heartbeat, dict) for frame in first] == [True, False]  # then a fetch
    assert all(not isinstance(frame.fail, list) for frame in first)
    for frame in first:
        ledger.answered(server.serve(frame), 0.0)
    exchange(ledger, server)

    assert (server.checkpoints, server.settled["j0"]) == ({"j0": b'{"page":3}'}, ["fail"])


def test_a_refused_checkpoint_of_a_continue_fails_the_attempt() -> None:
    server, ledger = ModelServer(1), make()
    (held,) = exchange(ledger, server)
    finish(ledger, held, fail(held, checkpoint=b'{"page":3}'))
    beat = next(frame for frame in ledger.frames(0.0, 0) if isinstance(frame.heartbeat, dict))

    told = ledger.answered(FrameReply(beat.id, heartbeat={"j0": ItemReply(error="too large", code="X")}), 0.0)

    (report,) = [frame for frame in ledger.frames(0.0, 0) if isinstance(frame.fail, list)]
    assert isinstance(report.fail, list)
    assert report.fail[0].error == "the checkpoint was refused: too large"
    assert "too large" in told.complaints[0]


def test_notes_that_follow_each_other_become_one_and_usage_goes_alone() -> None:
    server, ledger = ModelServer(1), make()
    (held,) = exchange(ledger, server)
    futures: list[Future[None]] = [Future() for _ in range(4)]
    notes = [Note(progress=b'{"n":1}'), Note(usage=b'{"t":1}'), Note(progress=b'{"n":2}'), Note(checkpoint=b'{"c":1}')]
    for note, future in zip(notes, futures, strict=True):
        ledger.note(held, note, future)

    beats = [frame.heartbeat["j0"] for frame in ledger.frames(0.0, 0) if isinstance(frame.heartbeat, dict)]
    assert [bytes(beat.progress) for beat in beats if isinstance(beat.progress, msgspec.Raw)] == [b'{"n":2}']
    assert all(isinstance(beat.usage, msgspec.UnsetType) for beat in beats)
    ledger.answered(FrameReply(3, heartbeat={"j0": ItemReply("ok")}), 0.0)
    (usage,) = [frame for frame in ledger.frames(0.0, 0) if isinstance(frame.heartbeat, dict)]
    ledger.answered(FrameReply(usage.id, heartbeat={"j0": ItemReply(code="VALIDATION_ERROR", error="no usage")}), 0.0)

    assert [future.exception() for future in (futures[0], *futures[2:])] == [None] * 3
    with pytest.raises(NoteRefused, match="no usage"):
        futures[1].result(0)


def test_leases_are_renewed_three_times_as_often_as_they_end() -> None:
    server, ledger = ModelServer(2), make()
    exchange(ledger, server)
    ledger.renew(LEASE_S / 3 - 0.1)
    assert not any(isinstance(frame.heartbeat, dict) for frame in ledger.frames(9.0, 0))

    ledger.renew(LEASE_S / 3)
    beats = [frame.heartbeat for frame in ledger.frames(10.0, 0) if isinstance(frame.heartbeat, dict)]
    assert [set(beat) for beat in beats] == [{"j0", "j1"}]


@pytest.mark.parametrize("status", ["cancel", "lease_lost"])
def test_a_heartbeat_tells_a_handler_to_stop(status: str) -> None:
    server, ledger = ModelServer(1), make()
    (held,) = exchange(ledger, server)
    ledger.renew(LEASE_S)
    beat = next(frame for frame in ledger.frames(LEASE_S, 0) if isinstance(frame.heartbeat, dict))

    settled = ledger.answered(FrameReply(beat.id, heartbeat={"j0": ItemReply(status)}), LEASE_S)

    assert settled.stopped == [(held, status)]
    finish(ledger, held, fail(held))
    reports = [frame for frame in ledger.frames(LEASE_S, 0) if isinstance(frame.fail, list)]
    assert len(reports) == (1 if status == "cancel" else 0)


def test_an_overload_is_waited_out_and_the_report_repeated() -> None:
    server, ledger = ModelServer(1), make()
    (held,) = exchange(ledger, server)
    finish(ledger, held, ack(held))
    frame = next(iter(ledger.frames(0.0, 0)))
    ledger.answered(FrameReply(frame.id, code="OVERLOADED", retry_after_ms=500), 0.0)

    assert list(ledger.frames(0.4, 0)) == []
    exchange(ledger, server, 0.6)
    assert server.settled["j0"] == ["ack"]


def test_a_result_that_the_server_refuses_becomes_a_failure() -> None:
    server, ledger = ModelServer(1), make()
    (held,) = exchange(ledger, server)
    finish(ledger, held, ack(held))
    frame = next(frame for frame in ledger.frames(0.0, 0) if isinstance(frame.ack, list))
    ledger.answered(FrameReply(frame.id, acked=[ItemReply(code="PAYLOAD_TOO_LARGE", error="300000 bytes")]), 0.0)

    exchange(ledger, server)
    assert server.settled["j0"] == ["fail"]


def test_a_note_of_a_job_that_is_gone_is_refused() -> None:
    server, ledger = ModelServer(1), make()
    (held,) = exchange(ledger, server)
    finish(ledger, held, ack(held))
    exchange(ledger, server)
    future: Future[None] = Future()

    ledger.note(held, Note(progress=b"{}"), future)

    with pytest.raises(NoteRefused):
        future.result(0)


def test_an_unreadable_or_unknown_answer_changes_nothing() -> None:
    ledger = make()
    assert ledger.answered(FrameReply(None, code="DRAINING"), 0.0) == ledger.answered(FrameReply(99), 0.0)
