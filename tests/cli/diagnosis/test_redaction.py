"""No secret leaves: neither a known one nor what looks like one. The rest stays readable."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.cli.diagnosis.redaction import HIDDEN, KNOWN_CHARS_MIN, Redaction
from corvo.model.api_key_text import KEY_BYTES, key_text

KEY = key_text(bytes(range(KEY_BYTES)))


@pytest.mark.parametrize(
    ("text", "secret", "kept"),
    [
        (f"the key {KEY} was refused", KEY, "the key [redacted] was refused"),
        ("postgresql://ada:p4ss%40word@db/jobs", "p4ss%40word", "postgresql://ada:[redacted]@db/jobs"),
        ("Authorization: Bearer abcdef123456", "abcdef123456", ""),
        ("sent x-api-key: abc123", "abc123", "sent x-api-key: [redacted]"),
        ('{"password": "a \\" b", "queue": "mail"}', 'a \\" b', '{"password": [redacted], "queue": "mail"}'),
        ("event=login client_secret='a b c' user=ada", "a b c", "event=login client_secret=[redacted] user=ada"),
        ("GET /x?token=abc&limit=5", "abc", "GET /x?token=[redacted]&limit=5"),
        ("a eyJhbGciOiJI.eyJzdWIiOiIx.c2ln b", "eyJzdWIiOiIx", "a [redacted] b"),
        ("x\n-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\ny", "MIIE", "x\n[redacted]\ny"),
        ("x\n-----BEGIN EC PRIVATE KEY-----\nMIIE", "MIIE", "x\n[redacted]"),
    ],
)
def test_what_looks_like_a_secret_is_replaced(text: str, secret: str, kept: str) -> None:
    told = Redaction().of(text)

    assert secret not in told and HIDDEN in told
    assert not kept or told == kept


@pytest.mark.parametrize(
    "text", ["queue=mail state=dead attempt=3", "http://host:8080/api", '{"tokens": 3}', "corvo_jobs_total 4", ""]
)
def test_the_rest_stays(text: str) -> None:
    assert Redaction(["another secret"]).of(text) == text


@given(st.text(min_size=KNOWN_CHARS_MIN), st.text(), st.text())
def test_a_known_secret_is_nowhere(secret: str, before: str, after: str) -> None:
    told = Redaction([secret]).of(before + secret + after)

    assert secret not in told.replace(HIDDEN, "") or secret in HIDDEN


def test_an_empty_secret_replaces_nothing() -> None:
    assert Redaction(["", "abc"]).of("abc def") == "abc def"
