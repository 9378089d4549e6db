"""The writer of the audit log: what waits for it, what it tries again, and what it gives up."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from corvo.model.audit import decode_record
from corvo.model.errors import Refusal
from corvo.ops.audit.append_audit import AppendAudit
from gateway.access.audit_writer import KEPT_MAX, KEPT_S, AuditWriter, Unwritten
from tests.support.audit import a_record


class FakeLog:
    """Shard 0: stores a record once for each request, unless it is told to refuse."""

    def __init__(self) -> None:
        self.stored: dict[int, bytes] = {}
        self.refusals: list[Refusal | None] = []  # of the next asks; None: it is stored, and the answer is lost
        self.asks = 0

    async def ask(self, ask: Any, timeout_s: float) -> int:
        assert isinstance(ask, AppendAudit)
        assert timeout_s > 0
        self.asks += 1
        refusal = self.refusals.pop(0) if self.refusals else "none"
        if isinstance(refusal, Refusal):
            raise refusal
        self.stored.setdefault(ask.ask_id, ask.document)
        if refusal is None:
            raise Refusal("OUTCOME_UNKNOWN", "the answer was lost")
        return list(self.stored).index(ask.ask_id) + 1

    def records(self) -> list[Any]:
        return [decode_record(document) for document in self.stored.values()]


NO_LEADER = Refusal("NOT_LEADER", "no leader", retry_after_ms=70)


def a_writer(log: FakeLog, clock: Callable[[], float] = lambda: 0.0) -> AuditWriter:
    numbers = iter(range(1, 10**6))
    return AuditWriter(log.ask, lambda: next(numbers), clock, pause_s=0.0)


async def settled(writer: AuditWriter) -> None:
    async with asyncio.timeout(5):
        while len(writer):
            await asyncio.sleep(0)


def run(play: Any) -> None:
    asyncio.run(play)


def test_an_announcement_gives_the_number() -> None:
    async def play() -> None:
        log = FakeLog()
        writer = a_writer(log)
        assert [await writer.announce(a_record()), await writer.announce(a_record())] == [1, 2]

    run(play())


def test_an_announcement_that_fails_is_refused_at_once_and_not_tried_again() -> None:
    async def play() -> None:
        log = FakeLog()
        log.refusals = [NO_LEADER]
        writer = a_writer(log)
        with pytest.raises(Refusal) as refused:
            await writer.announce(a_record())
        assert (refused.value.code, refused.value.retry_after_ms) == ("AUDIT_UNAVAILABLE", 70)
        assert "nothing was changed" in refused.value.message
        assert (len(writer), log.asks) == (0, 1)

    run(play())


@pytest.mark.parametrize("answer", [NO_LEADER, None], ids=["not stored", "stored, answer lost"])
def test_an_attempt_that_failed_is_told_later_under_its_one_intent(answer: Refusal | None) -> None:
    async def play() -> None:
        log = FakeLog()
        log.refusals = [answer, NO_LEADER, NO_LEADER]
        writer = a_writer(log)
        with pytest.raises(Refusal):
            await writer.announce(a_record(path="/x"), a_record(kind="outcome", status=503))
        await settled(writer)
        intent, outcome = log.records()
        assert (intent.kind, outcome.kind, outcome.intent) == ("intent", "outcome", 1)

    run(play())


@pytest.mark.parametrize("answers", [[], [NO_LEADER], [None], [NO_LEADER, None, NO_LEADER]])
def test_a_report_is_stored_once_whatever_is_lost(answers: list[Refusal | None]) -> None:
    async def play() -> None:
        log = FakeLog()
        log.refusals = list(answers)
        writer = a_writer(log)
        await writer.report(a_record(kind="outcome", intent=7))
        await settled(writer)
        assert [record.intent for record in log.records()] == [7]
        assert log.asks == len(answers) + 1

    run(play())


def test_a_report_whose_task_is_cancelled_is_kept() -> None:
    async def play() -> None:
        log = FakeLog()
        gate = asyncio.Event()

        async def slow(ask: Any, timeout_s: float) -> int:
            await gate.wait()
            return await log.ask(ask, timeout_s)

        writer = AuditWriter(slow, lambda: 1, pause_s=0.0)
        task = asyncio.ensure_future(writer.report(a_record(kind="outcome", intent=3)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        gate.set()
        await settled(writer)
        assert [record.intent for record in log.records()] == [3]

    run(play())


def test_what_cannot_be_written_for_long_is_given_up_and_named() -> None:
    async def play() -> None:
        log = FakeLog()
        now = [0.0]
        writer = a_writer(log, lambda: now[0])
        log.refusals = [NO_LEADER] * 3
        with capture_logs() as lines:
            await writer.report(a_record(kind="outcome", intent=5, principal="ada", status=200))
            now[0] = KEPT_S
            await settled(writer)
        assert log.records() == []
        lost = [line for line in lines if line["event"] == "a record of the audit log is lost"]
        assert [(line["intent"], line["principal"]) for line in lost] == [(5, "ada")]
        assert lost[0]["log_level"] == "error"

    run(play())


def test_no_more_is_kept_than_the_bound() -> None:
    async def play() -> None:
        log = FakeLog()
        log.refusals = [NO_LEADER] * 10**5
        writer = a_writer(log)
        with capture_logs() as lines:
            for _ in range(KEPT_MAX + 2):
                writer.keep(Unwritten(a_record(kind="outcome"), 1))
        assert len(writer) == KEPT_MAX
        assert sum(line["reason"] == "too many records wait" for line in lines) == 2
        await writer.stop()

    run(play())


def test_a_stop_writes_what_it_can_and_names_the_rest() -> None:
    async def play() -> None:
        log = FakeLog()
        writer = a_writer(log)
        log.refusals = [NO_LEADER]
        await writer.report(a_record(kind="outcome", intent=1))
        await writer.stop()
        assert [record.intent for record in log.records()] == [1]
        assert len(writer) == 0
        await writer.stop()

    run(play())
