"""Ids that follow from the key of a request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.errors import Refusal
from corvo.model.ids import Minter, repeatable_minter

KEYS = st.from_regex(r"[A-Za-z0-9._-]{16,128}", fullmatch=True).map(str.encode)
UUID7 = b"0190a1b2-c3d4-7e5f-8a6b-0123456789ab"


def ids(minter: Minter) -> list[object]:
    return [minter.job_id(3), minter.job_id(3), minter.batch_id(1), minter.claim_id()]


@given(KEYS, st.binary())
def test_a_repeated_request_has_the_same_ids_and_each_is_another(key: bytes, body: bytes) -> None:
    made = ids(repeatable_minter(key, b"POST", b"/x", body))

    assert made == ids(repeatable_minter(key, b"POST", b"/x", body))
    assert len(set(made)) == 4
    assert all(len(job_id) == len("s03_job_") + 26 for job_id in made[:2])  # type: ignore[arg-type]


@given(KEYS, st.lists(st.binary(), min_size=1), st.lists(st.binary(), min_size=1))
def test_the_same_key_for_another_request_gives_others(key: bytes, one: list[bytes], other: list[bytes]) -> None:
    same = ids(repeatable_minter(key, *one)) == ids(repeatable_minter(key, *other))

    assert same == (one == other)


def test_quotes_do_not_count_and_a_namespace_does() -> None:
    plain = repeatable_minter(UUID7, b"x").job_id(0)

    assert repeatable_minter(b'"%b"' % UUID7, b"x").job_id(0) == plain
    assert repeatable_minter(UUID7, b"x", namespace="acme").job_id(0) == f"{plain}_acme"


def test_ids_of_timed_keys_sort_by_that_time() -> None:
    later = b"0190a1b2-c3d5" + UUID7[13:]

    for body in range(50):
        one, other = (repeatable_minter(key, b"%d" % body).job_id(0) for key in (UUID7, later))
        assert one < other


@pytest.mark.parametrize("key", [b"", b"short", b"x" * 129, b"has a blank in it", b"caf\xe9" * 9, b'"0123456789abcde'])
def test_a_key_that_may_be_another_s_is_refused(key: bytes) -> None:
    with pytest.raises(Refusal, match="Idempotency-Key"):
        repeatable_minter(key)
