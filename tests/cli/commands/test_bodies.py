"""What was typed becomes the body of an endpoint, by the endpoint's name."""

import pytest

from corvo.cli.commands.bodies import BadArgument, body_of
from corvo.client.bodies import MoveBody, RescheduleBody


def test_what_was_typed_becomes_a_body() -> None:
    assert body_of("move", {"queue": "slow", "reset_attempts": "true"}) == MoveBody("slow", reset_attempts=True)
    assert body_of("reschedule", {"delay_ms": "1500"}) == RescheduleBody(delay_ms=1500)
    assert body_of("retry", {}) is None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "queue: "),
        ({"queue": "slow", "reset_attempts": "perhaps"}, "reset_attempts: "),
        ({"queue": "slow", "quue": "fast"}, "quue: "),
    ],
)
def test_what_no_body_takes_is_a_sentence_about_the_field(fields: dict[str, str], words: str) -> None:
    with pytest.raises(BadArgument, match=f"^{words}"):
        body_of("move", fields)
