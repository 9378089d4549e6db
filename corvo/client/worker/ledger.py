"""The jobs that a worker holds, and what the server has still to hear about each. Pure: no socket, no clock.

The ledger hands out frames and takes answers. A report stays in it until an answer settles it. What was on its way when
the connection broke is sent again with the same lease token: the server knows a repeated ack, and refuses a repeated
fail, which then has arrived. So no result is lost and none counts twice.

Of one job at most one thing is under way. A note (progress, checkpoint, usage) goes before the report.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import UNSET, Raw

from ..routes import RETRYABLE
from .context import Note, NoteRefused, RunningJob, StopReason
from .frames import (
    BEATS_PER_FRAME,
    REPORTS_PER_FRAME,
    AckOut,
    BeatOut,
    FailOut,
    FetchOut,
    FrameOut,
    FrameReply,
    ItemReply,
)
from .lanes import Lane
from .reports import JobReport, refused_report

FRAMES_MAX = 48  # open at once, below the server's 64 of one stream
BEATS_EVERY = 3  # in a lease
# The outcome may be known to a later request only: the same item again finds out.
AGAIN = RETRYABLE | {"OUTCOME_UNKNOWN", "DEADLINE_EXCEEDED", "INTERNAL_ERROR", "DRAINING", "ACCESS_UNAVAILABLE"}
SETTLED = frozenset(["LEASE_LOST", "WRONG_STATE", "JOB_NOT_FOUND", "JOB_MOVED"])
PAUSE_S_DEFAULT = 0.2


class Stoppable(Protocol):
    """The context of a running handler."""

    def stop(self, reason: StopReason) -> None: ...


class Held(msgspec.Struct, eq=False):
    """One job that the worker holds, from the claim to the answered report."""

    job: RunningJob
    lane: Lane
    renewed_at: float
    context: Any = None  # a `Context`, made when the handler begins
    started_at: float = 0.0  # 0: it waits for a slot
    has_ended: bool = False  # its handler returned or raised: the slot is free
    is_interrupted: bool = False
    is_over: bool = False  # reported, whether the handler has ended or not
    is_known: bool = True  # False: the server has settled it
    note: Note = Note()
    note_futures: list["Future[None]"] = []
    usages: list[tuple[bytes, "Future[None]"]] = []
    report: JobReport | None = None
    is_busy: bool = False  # something of it is under way
    asked_to_stop: StopReason | None = None  # before its context is made
    runner: Any = None  # what its runner needs to reach it


class Flight(NamedTuple):
    helds: list[Held]
    kind: str  # "report", "beat", "fetch"
    notes: list[tuple[Note, list["Future[None]"]]] = []
    lane: Lane | None = None
    asked: int = 0


class Settled(NamedTuple):
    """What an answer changed."""

    claimed: list[Held] = []
    stopped: list[tuple[Held, StopReason]] = []
    counts: dict[str, int] = {}
    complaints: list[str] = []  # for the log: what no repetition will mend


class Ledger:
    def __init__(self, lanes: Iterable[Lane], worker_id: str, hostname: str, lease_s: float, version: str = "") -> None:
        self.lanes = list(lanes)
        self.held: dict[str, Held] = {}
        self.is_fetching = True
        self.resume_at = 0.0  # the server asked for a pause until then
        self._flights: dict[int, Flight] = {}
        self._acks: deque[Held] = deque()
        self._fails: deque[Held] = deque()
        self._beats: dict[str, Held] = {}  # with a note, or due
        self._last_id = 0
        self._lease_s = lease_s
        self._who = (worker_id, hostname, version)

    # What the worker says

    def note(self, held: Held, note: Note, future: "Future[None]") -> None:
        if not held.is_known:
            future.set_exception(NoteRefused("the job is no longer this worker's"))
            return
        if note.usage:
            held.usages.append((note.usage, future))
        else:
            old = held.note
            held.note = Note(note.progress or old.progress, note.checkpoint or old.checkpoint)
            held.note_futures.append(future)
        self._beats[held.job.job_id] = held

    def report(self, held: Held, report: JobReport | None) -> None:
        """The handler has ended. None: the lease is lost."""
        held.is_over = True
        if report is None or not held.is_known:
            self._forget(held)
            return
        held.report = report
        if report.checkpoint:
            held.note = Note(held.note.progress, report.checkpoint)
        if held.note != Note() or held.usages:
            self._beats[held.job.job_id] = held
        elif not held.is_busy:
            self._file(held)

    def _file(self, held: Held) -> None:
        assert held.report is not None
        (self._acks if type(held.report.item) is AckOut else self._fails).append(held)

    def renew(self, now: float) -> None:
        """Marks the jobs whose leases are due for a heartbeat."""
        due = now - self._lease_s / BEATS_EVERY
        for held in self.held.values():
            if held.renewed_at <= due and held.is_known:
                self._beats[held.job.job_id] = held

    # Frames

    @property
    def open_fetches(self) -> int:
        return sum(lane.fetches for lane in self.lanes)

    def frames(self, now: float, wait_ms: int) -> Iterator[FrameOut]:
        """What can be sent now. Reports come first: they may free what the fetch behind them wants."""
        if now < self.resume_at:
            return
        while (self._acks or self._fails) and len(self._flights) < FRAMES_MAX:
            yield self._report_frame()
        while self._beats and len(self._flights) < FRAMES_MAX:
            frame = self._beat_frame(now)
            if frame is None:
                break
            yield frame
        if not self.is_fetching:
            return
        for lane in self.lanes:
            while len(self._flights) < FRAMES_MAX and (count := lane.wanted()):
                yield self._fetch_frame(lane, count, wait_ms)

    def _report_frame(self) -> FrameOut:
        acks = [self._acks.popleft() for _ in range(min(len(self._acks), REPORTS_PER_FRAME))]
        fails = [self._fails.popleft() for _ in range(min(len(self._fails), REPORTS_PER_FRAME))]
        for held in (*acks, *fails):
            held.is_busy = True
        number = self._fly(Flight(acks + fails, "report"))
        return FrameOut(
            number,
            [held.report.item for held in acks] if acks else UNSET,  # type: ignore[union-attr,misc]
            [held.report.item for held in fails] if fails else UNSET,  # type: ignore[union-attr,misc]
        )

    def _beat_frame(self, now: float) -> FrameOut | None:
        ready = [held for held in self._beats.values() if not held.is_busy][:BEATS_PER_FRAME]
        if not ready:
            return None
        beats: dict[str, BeatOut] = {}
        notes = []
        for held in ready:
            del self._beats[held.job.job_id]
            held.is_busy = True
            held.renewed_at = now  # as of when it was sent: the lease ends no earlier than that
            note, futures = held.note, held.note_futures
            if note != Note() or not held.usages:
                held.note, held.note_futures = Note(), []
            else:  # alone, so that a refusal says nothing about a checkpoint
                usage, future = held.usages.pop(0)
                note, futures = Note(usage=usage), [future]
            if held.usages:
                self._beats[held.job.job_id] = held
            notes.append((note, futures))
            beats[held.job.job_id] = BeatOut(
                held.job.lease_token,
                Raw(note.progress) if note.progress else UNSET,
                Raw(note.checkpoint) if note.checkpoint else UNSET,
                Raw(note.usage) if note.usage else UNSET,
            )
        return FrameOut(self._fly(Flight(ready, "beat", notes)), heartbeat=beats)

    def _fetch_frame(self, lane: Lane, count: int, wait_ms: int) -> FrameOut:
        lane.ask(count)
        worker_id, hostname, version = self._who
        pool = sum(each.slots for each in self.lanes)
        fetch = FetchOut(lane.queues, worker_id, hostname, count, wait_ms, self._lease_s, pool, version)
        return FrameOut(self._fly(Flight([], "fetch", [], lane, count)), fetch=fetch)

    def _fly(self, flight: Flight) -> int:
        self._last_id += 1
        self._flights[self._last_id] = flight
        return self._last_id

    # Answers

    def answered(self, reply: FrameReply, now: float) -> Settled:
        if not isinstance(reply.id, int) or (flight := self._flights.pop(reply.id, None)) is None:
            return Settled()
        if flight.kind == "fetch":
            return self._fetched(flight, reply, now)
        if flight.kind == "beat":
            return self._beaten(flight, reply, now)
        return self._reported(flight, reply, now)

    def lost_connection(self) -> None:
        """Everything under way goes back to where it came from."""
        flights, self._flights = self._flights, {}
        for flight in flights.values():
            self._take_back(flight)
        self.resume_at = 0.0

    def _take_back(self, flight: Flight) -> None:
        if flight.lane is not None:
            flight.lane.answered(flight.asked, 0)
        for place, held in enumerate(flight.helds):
            held.is_busy = False
            if flight.kind == "beat":
                self._note_again(held, *flight.notes[place])
            elif held.report is not None:
                self._file(held)

    def _note_again(self, held: Held, note: Note, futures: list["Future[None]"]) -> None:
        if not held.is_known:
            _fail(futures, "the job is no longer this worker's")
            return
        if note.usage:
            held.usages.insert(0, (note.usage, futures[0]))
        else:  # what was said meanwhile is newer
            held.note = Note(held.note.progress or note.progress, held.note.checkpoint or note.checkpoint)
            held.note_futures = futures + held.note_futures
        self._beats[held.job.job_id] = held

    def _pause(self, reply: FrameReply, now: float) -> list[str]:
        wait_s = reply.retry_after_ms / 1000 or PAUSE_S_DEFAULT
        if reply.code in AGAIN:
            self.resume_at = max(self.resume_at, now + wait_s)
            return []
        self.resume_at = max(self.resume_at, now + 5.0)  # a key without the permission: until somebody mends it
        return [f"the server refuses this worker: {reply.code}: {reply.error}"]

    def _fetched(self, flight: Flight, reply: FrameReply, now: float) -> Settled:
        assert flight.lane is not None
        jobs = [] if reply.jobs is UNSET else reply.jobs
        flight.lane.answered(flight.asked, len(jobs))
        if reply.jobs is UNSET:
            return Settled(complaints=self._pause(reply, now))
        claimed = []
        stopped: list[tuple[Held, StopReason]] = []
        for job in jobs:
            if (old := self.held.get(job.job_id)) is not None:  # an attempt whose lease ended while nobody could say so
                self._lose(old)
                if not old.is_over:
                    stopped.append((old, "lease_lost"))
            held = Held(job, flight.lane, now)
            self.held[job.job_id] = held
            claimed.append(held)
        return Settled(claimed, stopped)

    def _beaten(self, flight: Flight, reply: FrameReply, now: float) -> Settled:
        if reply.heartbeat is UNSET:
            self._take_back(flight)
            return Settled(complaints=self._pause(reply, now))
        stopped: list[tuple[Held, StopReason]] = []
        complaints: list[str] = []
        for held, (note, futures) in zip(flight.helds, flight.notes, strict=True):
            held.is_busy = False
            item = reply.heartbeat.get(held.job.job_id) or ItemReply("unknown")
            if item.status == "unknown" or item.code in AGAIN:
                self._note_again(held, note, futures)
                self.resume_at = max(self.resume_at, now + PAUSE_S_DEFAULT)
                continue
            if item.code:
                complaints.append(f"job {held.job.job_id}: the server refused a note: {item.error}")
                _fail(futures, item.error)
                if note.checkpoint and held.report is not None and held.report.checkpoint:
                    held.report = JobReport(
                        FailOut(held.job.job_id, held.job.lease_token, f"the checkpoint was refused: {item.error}")
                    )
            elif item.status in ("cancel", "lease_lost"):
                _fail(futures, "the job is no longer this worker's")
                if item.status == "lease_lost":
                    self._lose(held)
                if not held.is_over:
                    stopped.append((held, item.status))  # type: ignore[arg-type]  # just compared
            else:
                for future in futures:
                    if not future.done():
                        future.set_result(None)
            if held.is_known and held.report is not None and held.note == Note() and not held.usages:
                self._file(held)
        lost = sum(item.status == "lease_lost" for item in reply.heartbeat.values())
        return Settled(stopped=stopped, counts={"lost": lost} if lost else {}, complaints=complaints)

    def _reported(self, flight: Flight, reply: FrameReply, now: float) -> Settled:
        acked = [] if reply.acked is UNSET else reply.acked
        items = acked + ([] if reply.failed is UNSET else reply.failed)
        if len(items) != len(flight.helds):
            self._take_back(flight)
            return Settled(complaints=self._pause(reply, now))
        counts: dict[str, int] = {}
        complaints: list[str] = []
        for number, (held, item) in enumerate(zip(flight.helds, items, strict=True)):
            held.is_busy = False
            if held.report is None:
                continue  # its lease ended while this was on its way, and the job was claimed anew
            what = "completed" if number < len(acked) else item.status or "failed"
            if item.code in AGAIN:
                self._file(held)
                self.resume_at = max(self.resume_at, now + PAUSE_S_DEFAULT)
                continue
            if item.code and item.code not in SETTLED:
                complaints.append(f"job {held.job.job_id}: the server refused its report: {item.code}: {item.error}")
                held.report = refused_report(held.report.item, item.error) if held.report.item else None
                if held.report is not None:
                    self._file(held)
                    continue
            if item.code:
                what = "lost"
            counts[what] = counts.get(what, 0) + 1
            self._forget(held)
        return Settled(counts=counts, complaints=complaints)

    def _lose(self, held: Held) -> None:
        held.is_known = False
        held.report = None
        self._beats.pop(held.job.job_id, None)
        if self.held.get(held.job.job_id) is held and held.is_over:
            self._forget(held)

    def _forget(self, held: Held) -> None:
        held.is_known = False
        if self.held.get(held.job.job_id) is held:
            del self.held[held.job.job_id]
            self._beats.pop(held.job.job_id, None)
        _fail(held.note_futures, "the job is no longer this worker's")
        for _, future in held.usages:
            _fail([future], "the job is no longer this worker's")

    @property
    def unsettled(self) -> int:
        """Reports that the server has not answered."""
        return sum(held.report is not None for held in self.held.values())


def _fail(futures: list["Future[None]"], told: str) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(NoteRefused(told))
