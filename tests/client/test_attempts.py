"""When a call is sent again, and with what. No socket, no clock."""

import re

import pytest

from corvo.client.attempts import Attempts, new_key
from corvo.client.bodies import BulkBody, EnqueueBody, SearchBody
from corvo.client.calls import HttpCall, call_of
from corvo.client.errors import CorvoError, NotFound, Unreachable, UntrustedServer
from corvo.client.refusals import CLASSES, DeadlineExceeded, LeaseLost, OutcomeUnknown, Overloaded, class_of
from corvo.client.routes import RETRYABLE
from corvo.model.errors import STATUS

ENQUEUE: HttpCall = call_of("enqueue", EnqueueBody(queue="mail"))
SEARCH: HttpCall = call_of("search", SearchBody())
BULK: HttpCall = call_of("bulk", BulkBody(action="delete", job_ids=["j"]))
BROKEN, NOBODY = Unreachable("the connection broke"), Unreachable("nothing answers", was_sent=False)
UNKNOWN = OutcomeUnknown("OUTCOME_UNKNOWN", "look first", 503)
LATE = DeadlineExceeded("DEADLINE_EXCEEDED", "too late", 504)
OF_A_PROXY = class_of("", 502)("HTTP_502", "bad gateway", 502)
FULL = Overloaded("OVERLOADED", "too much", 429, 3.0)
LOST = LeaseLost("LEASE_LOST", "another worker has it", 409)


def attempts_of(call: HttpCall, waits: bool = True) -> Attempts:
    return Attempts(call, 0.0, timeout_s=10.0, deadline_s=15.0, waits_for_server=waits)


@pytest.mark.parametrize(
    ("call", "error", "is_repeated"),
    [
        (ENQUEUE, BROKEN, True),
        (ENQUEUE, UNKNOWN, True),
        (ENQUEUE, LATE, True),
        (ENQUEUE, OF_A_PROXY, True),
        (ENQUEUE, FULL, True),
        (ENQUEUE, NOBODY, True),
        (ENQUEUE, LOST, False),
        (ENQUEUE, UntrustedServer("no"), False),
        (SEARCH, BROKEN, True),
        (BULK, BROKEN, False),
        (BULK, UNKNOWN, False),
        (BULK, LATE, False),
        (BULK, OF_A_PROXY, False),
        (BULK, FULL, True),
        (BULK, NOBODY, True),
    ],
)
def test_only_what_is_safe_is_sent_again(call: HttpCall, error: CorvoError, is_repeated: bool) -> None:
    attempts = attempts_of(call)
    attempts.begin(0.0)

    assert (attempts.pause_after(error, 0.0) is not None) == is_repeated


def test_a_deadline_of_nothing_means_one_attempt_with_all_of_its_time() -> None:
    attempts = Attempts(ENQUEUE, 5.0, timeout_s=10.0, deadline_s=0.0, waits_for_server=True)

    assert attempts.begin(5.0)[1] == 10.0
    assert attempts.pause_after(FULL, 5.0) is None
    assert attempts.pause_after(BROKEN, 5.0) is None


def test_all_attempts_of_a_call_carry_one_key_and_their_number() -> None:
    attempts = attempts_of(ENQUEUE)

    heads = [attempts.begin(0.0)[0] for _ in range(3)]

    assert len({head["idempotency-key"] for head in heads}) == 1
    assert [head["x-corvo-attempt"] for head in heads] == ["1", "2", "3"]
    assert attempts_of(ENQUEUE).begin(0.0)[0]["idempotency-key"] != heads[0]["idempotency-key"]


@pytest.mark.parametrize("call", [SEARCH, BULK])
def test_a_call_without_ids_carries_no_key(call: HttpCall) -> None:
    assert attempts_of(call).begin(0.0)[0] == {"content-type": "application/json"}


def test_an_attempt_has_no_more_time_than_is_left() -> None:
    attempts = attempts_of(ENQUEUE)

    assert attempts.begin(0.0)[1] == 10.0
    assert attempts.begin(12.0)[1] == 3.0


def test_a_pause_is_the_server_s_or_grows_and_ends_before_the_deadline() -> None:
    attempts = attempts_of(ENQUEUE)

    assert attempts.pause_after(FULL, 0.0) == 3.0
    assert attempts.pause_after(BROKEN, 3.0) == 0.4
    assert attempts.pause_after(FULL, 12.5) is None


def test_a_key_is_a_uuid_of_version_7_and_keys_sort_by_time() -> None:
    keys = [new_key() for _ in range(100)]

    assert all(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", k) for k in keys)
    assert len(set(keys)) == 100
    assert [k[:13] for k in keys] == sorted(k[:13] for k in keys)


@pytest.mark.parametrize("code", STATUS)
def test_each_code_has_its_exception(code: str) -> None:
    kind = class_of(code, STATUS[code])

    assert kind is CLASSES[code]
    assert kind(code, "no", STATUS[code]).may_retry == (code in RETRYABLE)


def test_a_code_of_a_newer_server_is_of_its_group() -> None:
    assert class_of("PLANET_NOT_FOUND", 404) is NotFound
    assert class_of("", 599).__name__ == "Unavailable"
    assert class_of("", 451).__name__ == "InvalidRequest"
