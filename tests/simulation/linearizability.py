"""Whether what clients saw is what one machine that does one thing at a time could have shown them.

Two checks. `witness` trusts the log: it replays the committed entries through the plain model of `tests/support` and
compares every answer, and it compares the order of the log with that of real time. `wgl` trusts nothing: it
searches, job by job, for an order of the operations that explains all answers (Wing and Gong 1993, with Lowe's
memory of visited configurations). Operations without an answer may have happened at any later time, or never.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from corvo.endpoint import Operation
from corvo.model.errors import Refused
from corvo.ops.jobs.ack import Ack
from corvo.ops.jobs.enqueue import Enqueue
from corvo.ops.jobs.fail import Fail, Failure
from corvo.ops.jobs.fetch import Claimed, Fetch
from corvo.ops.jobs.heartbeat import Heartbeat, Pulse
from corvo.wire import operations_of
from tests.support.model import Model

JobState = tuple[str, int]  # the job's state by name, token of its newest claim
ABSENT: JobState = ("absent", 0)
NEVER = 1 << 60


class Op(msgspec.Struct):
    """One operation of a client on one job, or one that the machine did by itself."""

    kind: str  # enqueue claim ack fail beat read expire promote
    job: str
    call: int
    end: int = NEVER  # when the answer came
    token: int = 0
    result: Any = None  # None: unknown
    client: str = ""

    @property
    def is_answered(self) -> bool:
        return self.end != NEVER


# --- the machine for one job, as small as possible: (state, operation) → every state that may follow


def _enqueue(state: JobState, op: Op) -> list[JobState]:
    if state != ABSENT:
        return [state]
    return [(op.result, 0)] if op.result else [("pending", 0), ("scheduled", 0)]


def _claim(state: JobState, op: Op) -> list[JobState]:
    return [("active", op.token)] if state == ("pending", op.token - 1) else []


def _ack(state: JobState, op: Op) -> list[JobState]:
    succeeds = state in (("active", op.token), ("completed", op.token))
    if op.result is None:
        return [("completed", op.token)] if succeeds else [state]
    if op.result == "ok":
        return [("completed", op.token)] if succeeds else []
    return [] if succeeds else [state]


def _fail(state: JobState, op: Op) -> list[JobState]:
    holds = state == ("active", op.token)
    if op.result is None:
        return [("retrying", op.token), ("dead", op.token)] if holds else [state]
    if op.result == "lost":
        return [] if holds else [state]
    return [(op.result, op.token)] if holds else []


def _beat(state: JobState, op: Op) -> list[JobState]:
    if op.result is None:
        return [state]
    return [state] if (op.result == "ok") == (state == ("active", op.token)) else []


def _read(state: JobState, op: Op) -> list[JobState]:
    return [state] if op.result is None or op.result == state else []


def _expire(state: JobState, op: Op) -> list[JobState]:
    return [(op.result, op.token)] if state == ("active", op.token) else []


def _promote(state: JobState, op: Op) -> list[JobState]:
    return [("pending", state[1])] if state[0] in ("scheduled", "retrying") else []


RULES: dict[str, Callable[[JobState, Op], list[JobState]]] = {
    "enqueue": _enqueue,
    "claim": _claim,
    "ack": _ack,
    "fail": _fail,
    "beat": _beat,
    "read": _read,
    "expire": _expire,
    "promote": _promote,
}


def by_job(ops: Iterable[Op]) -> dict[str, list[Op]]:
    groups: dict[str, list[Op]] = {}
    for op in ops:
        groups.setdefault(op.job, []).append(op)
    return groups


def is_linearizable(ops: list[Op], start: JobState = ABSENT) -> bool:
    """Whether some order of these operations of one job explains every answer."""
    ops = sorted(ops, key=lambda op: op.call)
    answered = sum(1 << number for number, op in enumerate(ops) if op.is_answered)
    seen: set[tuple[int, JobState]] = set()
    stack = [(0, start)]
    while stack:
        done, state = stack.pop()
        if (done, state) in seen:
            continue
        seen.add((done, state))
        if done & answered == answered:
            return True
        # Whatever comes next must have been called before the first answer that is still to be explained.
        first_end = min(op.end for number, op in enumerate(ops) if not done >> number & 1)
        for number, op in enumerate(ops):
            if op.call > first_end:
                break
            if not done >> number & 1:
                stack.extend((done | 1 << number, after) for after in RULES[op.kind](state, op))
    return False


def wgl(ops: Iterable[Op]) -> list[str]:
    """The jobs whose histories no single machine explains."""
    return [job for job, group in by_job(ops).items() if not is_linearizable(group)]


# --- the log as witness


class Answer(msgspec.Struct):
    """What a client asked and was told, and the place in the log that the answer came from."""

    ask: Operation | str
    call: int
    end: int
    result: Any
    place: tuple[int, int]  # index, number within the entry


class Replay(msgspec.Struct):
    """What the model made of the committed log."""

    results: dict[tuple[int, int], Any]
    states: dict[tuple[int, str], JobState]  # of each job after the entries that changed it
    final: Model
    claims: list[tuple[int, int, str, int]]  # index, claim id, job, token
    moves: list[tuple[int, Op]]  # index, what the machine did by itself


def replay(log: list[tuple[int, bytes]]) -> Replay:
    model = Model()
    found = Replay({}, {}, model, [], [])
    for index, payload in log:
        now, operations = operations_of(payload)
        for number, operation in enumerate(operations):
            before = {job.id: (job.state, job.token) for job in model.jobs.values()}
            (result,) = model.entry(now, [operation])
            found.results[(index, number)] = result
            for job in model.jobs.values():
                state = (job.state, job.token)
                was = before.get(job.id, ABSENT)
                if state == was:
                    continue
                found.states[(index, job.id)] = state
                if isinstance(operation, Fetch):
                    found.claims.append((index, operation.claim_id, job.id, job.token))
                elif not isinstance(operation, Enqueue | Ack | Fail):
                    kind = "expire" if was[0] == "active" else "promote"
                    found.moves.append((index, Op(kind, job.id, 0, 0, job.token, job.state)))
    return found


def plain(ask: Operation, result: Any) -> Any:
    """A result of the machine in the words of the model."""
    if isinstance(ask, Enqueue):
        return [state.name.lower() for state in result]
    if isinstance(ask, Fetch):
        return [(item.job_id, item.attempt, item.lease_token) for item in result if isinstance(item, Claimed)]
    if isinstance(ask, Heartbeat):
        return [Pulse(pulse).name.lower() for pulse in result]
    return [_plain_outcome(outcome) for outcome in result]


def _plain_outcome(outcome: Any) -> Any:
    if isinstance(outcome, Refused):
        return outcome.code
    if isinstance(outcome, Failure):
        return (outcome.state.name.lower(), outcome.attempts_remaining, outcome.next_attempt_at)
    return outcome


def witness(answers: list[Answer], log: Replay) -> list[str]:
    """Sentences about answers that the log does not bear out."""
    faults: list[str] = []
    states: dict[str, list[tuple[int, JobState]]] = {}
    for (index, job), state in log.states.items():
        states.setdefault(job, []).append((index, state))
    for answer in answers:
        if isinstance(answer.ask, str):
            index = answer.place[0]
            expected: Any = ABSENT
            for at, state in states.get(answer.ask, []):
                if at <= index:
                    expected = state
            told: Any = answer.result
        else:
            expected = log.results.get(answer.place, "nothing at this place")
            told = plain(answer.ask, answer.result)
        if told != expected:
            faults.append(f"{answer.ask} at {answer.place} was answered {told}, the log says {expected}")
    return faults + real_time(answers)


def real_time(answers: list[Answer]) -> list[str]:
    """What was answered before another was asked lies before it in the log."""
    faults: list[str] = []
    ended: list[tuple[int, tuple[int, int]]] = []
    for answer in answers:
        insort(ended, (answer.end, answer.place))
    highest, at = (0, 0), 0
    for answer in sorted(answers, key=lambda one: one.call):
        while at < len(ended) and ended[at][0] < answer.call:
            highest = max(highest, ended[at][1])
            at += 1
        is_read = isinstance(answer.ask, str)
        if answer.place < highest and not (is_read and answer.place[0] >= highest[0]):
            faults.append(f"{answer.ask} at {answer.place} was asked after {highest} had been answered")
    return faults
