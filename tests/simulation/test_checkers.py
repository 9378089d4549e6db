"""The checkers must refuse what is wrong: a passing simulation means nothing without this."""

from __future__ import annotations

import random

import pytest

from corvo.model.lifecycle import State
from corvo.ops.jobs.fetch import Claimed
from corvo.wire import Entry, encode
from tests.simulation.linearizability import ABSENT, NEVER, Answer, Op, is_linearizable, real_time, replay, wgl, witness
from tests.support.builders import MS, NOW, ack, enqueue, fetch, job_id, reclaim

J = "j1"


def op(kind: str, call: int, end: int = NEVER, token: int = 0, result: object = "ok") -> Op:
    return Op(kind, J, call, end, token, result)


BORN = op("enqueue", 1, 2, result="pending")
CLAIMED = op("claim", 3, 4, 1)
EXPIRED = op("expire", 5, 6, 1, "pending")

BROKEN = {
    "double ack by two claims": [BORN, CLAIMED, op("ack", 5, 6, 1), op("claim", 7, 8, 2), op("ack", 9, 10, 2)],
    "ack without a claim": [BORN, op("ack", 3, 4, 1)],
    "ack of a job that never was": [op("ack", 3, 4, 1)],
    "ack before the claim": [BORN, op("ack", 3, 4, 1), op("claim", 5, 6, 1)],
    "ack after expiry": [BORN, CLAIMED, EXPIRED, op("ack", 7, 8, 1)],
    "ack of an old claim": [BORN, CLAIMED, EXPIRED, op("claim", 7, 8, 2), op("ack", 9, 10, 1)],
    "ack refused though held": [BORN, CLAIMED, op("ack", 5, 6, 1, "lost")],
    "ack refused after it succeeded": [BORN, CLAIMED, op("ack", 5, 6, 1), op("ack", 7, 8, 1, "lost")],
    "job claimed twice at once": [BORN, CLAIMED, op("claim", 5, 6, 2)],
    "token used twice": [BORN, CLAIMED, EXPIRED, op("claim", 7, 8, 1)],
    "token used twice by concurrent claims": [BORN, op("claim", 3, 9, 1), op("claim", 3, 9, 1)],
    "token left out": [BORN, op("claim", 3, 4, 2)],
    "token goes back": [BORN, CLAIMED, EXPIRED, op("claim", 7, 8, 2), op("read", 9, 10, result=("active", 1))],
    "claim of a done job": [BORN, CLAIMED, op("ack", 5, 6, 1), op("claim", 7, 8, 2)],
    "claim of a dead job": [BORN, CLAIMED, op("fail", 5, 6, 1, "dead"), op("claim", 7, 8, 2)],
    "claim before it was enqueued": [op("claim", 1, 2, 1), op("enqueue", 3, 4, result="pending")],
    "claim while it waits for its retry": [BORN, CLAIMED, op("fail", 5, 6, 1, "retrying"), op("claim", 7, 8, 2)],
    "claim before its schedule": [op("enqueue", 1, 2, result="scheduled"), op("claim", 3, 4, 1)],
    "lost job": [BORN, op("read", 3, 4, result=ABSENT)],
    "lost completion": [BORN, CLAIMED, op("ack", 5, 6, 1), op("read", 7, 8, result=("active", 1))],
    "stale read of a claim": [BORN, CLAIMED, op("read", 5, 6, result=("pending", 0))],
    "stale read after an expiry": [BORN, CLAIMED, EXPIRED, op("read", 7, 8, result=("active", 1))],
    "reads go back in time": [
        BORN,
        op("claim", 3, 20, 1),
        op("read", 5, 6, result=("active", 1)),
        op("read", 7, 8, result=("pending", 0)),
    ],
    "read from the future": [BORN, op("read", 3, 4, result=("active", 1)), op("claim", 5, 6, 1)],
    "read of what nobody did": [BORN, op("read", 3, 4, result=("completed", 1))],
    "fail after ack": [BORN, CLAIMED, op("ack", 5, 6, 1), op("fail", 7, 8, 1, "retrying")],
    "fail refused though held": [BORN, CLAIMED, op("fail", 5, 6, 1, "lost")],
    "fail after expiry": [BORN, CLAIMED, EXPIRED, op("fail", 7, 8, 1, "dead")],
    "beat after expiry": [BORN, CLAIMED, EXPIRED, op("beat", 7, 8, 1)],
    "beat refused though held": [BORN, CLAIMED, op("beat", 5, 6, 1, "lease_lost")],
    "expiry of what was done": [BORN, CLAIMED, op("ack", 5, 6, 1), op("expire", 7, 8, 1, "pending")],
    "promotion of a done job": [BORN, CLAIMED, op("ack", 5, 6, 1), op("promote", 7, 8)],
    "unknown ack cannot have come before its call": [
        BORN,
        CLAIMED,
        op("read", 5, 6, result=("completed", 1)),
        op("ack", 7, NEVER, 1, None),
    ],
    "unknown claim is not a second one": [
        BORN,
        op("claim", 3, NEVER, 1, None),
        op("ack", 5, 6, 1),
        op("read", 7, 8, result=("completed", 2)),
    ],
}
SOUND = {
    "a life": [BORN, CLAIMED, op("ack", 5, 6, 1), op("read", 7, 8, result=("completed", 1))],
    "a repeated enqueue": [BORN, CLAIMED, op("enqueue", 5, 6, result="pending"), op("ack", 7, 8, 1)],
    "a repeated ack": [BORN, CLAIMED, op("ack", 5, 6, 1), op("ack", 7, 8, 1)],
    "a retry": [BORN, CLAIMED, op("fail", 5, 6, 1, "retrying"), op("promote", 7, 8), op("claim", 9, 10, 2)],
    "an expiry in time": [BORN, CLAIMED, EXPIRED, op("ack", 7, 8, 1, "lost"), op("claim", 9, 10, 2)],
    "an ack that races an expiry and wins": [BORN, CLAIMED, op("ack", 5, 9, 1), op("read", 6, 8, result=("active", 1))],
    "concurrent reads see either": [
        BORN,
        op("claim", 3, 10, 1),
        op("read", 4, 5, result=("pending", 0)),
        op("read", 6, 7, result=("active", 1)),
    ],
    "an unknown ack that happened": [
        BORN,
        CLAIMED,
        op("ack", 5, NEVER, 1, None),
        op("read", 7, 8, result=("completed", 1)),
    ],
    "an unknown ack that did not": [
        BORN,
        CLAIMED,
        op("ack", 5, NEVER, 1, None),
        op("read", 7, 8, result=("active", 1)),
    ],
    "an unknown ack that comes late": [
        BORN,
        CLAIMED,
        op("ack", 5, NEVER, 1, None),
        op("read", 7, 8, result=("active", 1)),
        op("read", 9, 10, result=("completed", 1)),
    ],
    "an unknown claim explains the next token": [BORN, op("claim", 3, NEVER, 1), EXPIRED, op("claim", 7, 8, 2)],
    "nothing at all": [],
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_history_is_refused(name: str) -> None:
    assert not is_linearizable(BROKEN[name])
    assert wgl(BROKEN[name]) == [J]


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_history_is_accepted(name: str) -> None:
    assert is_linearizable(SOUND[name])


def test_the_order_of_writing_down_does_not_matter() -> None:
    dice = random.Random(1)
    for ops, is_sound in [(ops, True) for ops in SOUND.values()] + [(ops, False) for ops in BROKEN.values()]:
        shuffled = list(ops)
        dice.shuffle(shuffled)
        assert is_linearizable(shuffled) is is_sound


def test_jobs_are_judged_apart() -> None:
    other = [Op("enqueue", "j2", 1, 2, 0, "pending"), Op("ack", "j2", 3, 4, 1, "ok")]

    assert wgl([*SOUND["a life"], *other]) == ["j2"]


def test_many_concurrent_unknowns_are_searched_in_time() -> None:
    unknown = [op("ack", 5, NEVER, 1, None) for _ in range(8)]
    reads = [op("read", 20 + number, 40, result=("completed", 1)) for number in range(4)]

    assert is_linearizable([BORN, CLAIMED, *unknown, *reads])
    assert not is_linearizable([BORN, CLAIMED, *unknown, *reads, op("read", 50, 51, result=("active", 1))])


# --- the witness

LOG = [
    (2, encode(Entry(NOW, [encode(enqueue(1))]))),
    (3, encode(Entry(NOW, [encode(fetch(claim=7, lease_ms=1_000))]))),
    (5, encode(Entry(NOW + 2_000 * MS, [encode(reclaim()), encode(ack(1, ask=9, token=1))]))),
]
CLAIM = Claimed(job_id(1), "mail", b"{}", 1, 3, 1_000, 1, b"", b"")


def answer(ask: object, call: int, end: int, result: object, *place: int) -> Answer:
    return Answer(ask, call, end, result, (place[0], place[1]))  # type: ignore[arg-type]


TOLD = [
    answer(enqueue(1), 1, 2, [State.PENDING], 2, 0),
    answer(fetch(claim=7, lease_ms=1_000), 3, 4, [CLAIM], 3, 0),
    answer(job_id(1), 5, 6, ("active", 1), 3, 9),
]


def test_the_witness_bears_out_what_the_log_says() -> None:
    assert witness(TOLD, replay(LOG)) == []


WRONG = {
    "acked after expiry": answer(ack(1, ask=9, token=1), 7, 8, [None], 5, 1),
    "claimed twice": answer(fetch(claim=8), 7, 8, [CLAIM], 3, 0),
    "born scheduled": answer(enqueue(1), 1, 2, [State.SCHEDULED], 2, 0),
    "answered from nowhere": answer(enqueue(2), 7, 8, [State.PENDING], 9, 0),
    "read of an old state": answer(job_id(1), 7, 8, ("pending", 0), 3, 9),
    "read of a job that is not": answer(job_id(2), 7, 8, ("pending", 0), 3, 9),
    "asked after a later answer": answer(enqueue(1), 10, 11, [State.PENDING], 2, 0),
    "read after a later answer": answer(job_id(1), 10, 11, ("pending", 0), 2, 9),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_witness_refuses(name: str) -> None:
    assert witness([*TOLD, WRONG[name]], replay(LOG))


def test_the_replay_tells_what_the_machine_did_by_itself() -> None:
    log = replay(LOG)

    assert [(index, op.kind, op.token, op.result) for index, op in log.moves] == [(5, "expire", 1, "pending")]
    assert log.claims == [(3, 7, job_id(1), 1)]


def test_concurrent_answers_may_stand_in_any_order() -> None:
    one = answer(enqueue(1), 1, 10, [State.PENDING], 3, 0)
    other = answer(enqueue(2), 2, 9, [State.PENDING], 2, 0)

    assert real_time([one, other]) == []
