"""The family of refusals."""

import msgspec
import pytest

from corvo.model.errors import RETRYABLE, STATUS, Corrupt, Refusal, Refused, invalid


def test_every_code_is_upper_snake_and_has_an_error_status() -> None:
    assert all(code == code.upper() and code.replace("_", "").isalpha() for code in STATUS)
    assert all(400 <= status < 600 for status in STATUS.values())


def test_what_may_be_sent_again_is_known_and_never_the_callers_own_fault() -> None:
    assert set(STATUS) >= RETRYABLE
    assert all(STATUS[code] in (429, 503, 504) for code in RETRYABLE)


@pytest.mark.parametrize("code", sorted(STATUS))
def test_a_refusal_knows_its_status(code: str) -> None:
    assert Refusal(code, "no").status == STATUS[code]


def test_a_refusal_survives_the_wire_with_code_message_and_hint() -> None:
    refused = Refused("OVERLOADED", "try later", 250)

    refusal = msgspec.msgpack.decode(msgspec.msgpack.encode(refused), type=Refused).to_refusal()

    assert (refusal.code, refusal.message, refusal.retry_after_ms) == ("OVERLOADED", "try later", 250)


def test_invalid_names_the_field_in_the_message_and_beside_it() -> None:
    refusal = invalid("jobs[3].queue", "is too long")

    assert (refusal.code, refusal.field) == ("VALIDATION_ERROR", "jobs[3].queue")
    assert refusal.message == "jobs[3].queue: is too long"


def test_corruption_is_no_refusal_so_that_nobody_answers_it() -> None:
    assert not issubclass(Corrupt, Refusal)
    assert issubclass(Corrupt, AssertionError)
