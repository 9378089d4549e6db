"""Terms: the conditions in a request become the bonds of a job, and most jobs have none."""

from typing import Any

import msgspec
import pytest

from corvo.model.errors import Refusal
from corvo.model.job_extras import Chain, ChainStep, IfLost, JobExtras, UniqueUntil
from corvo.model.json_input import decode_body
from corvo.model.limits import CHAIN_BYTES_MAX, DELAY_MS_MAX, DEPENDENCIES_MAX, STEPS_PER_CHAIN_MAX
from corvo.ops.job_terms import JobTerms, StepBody, duration_ms, extras_of, step_of
from tests.support.builders import an_asking, job_id


def extras(**fields: Any) -> JobExtras | None:
    terms = decode_body(msgspec.json.Decoder(JobTerms), msgspec.json.encode(fields))
    return extras_of(an_asking(), terms, "mail", "chn_1", "")


def refusal_of(**fields: Any) -> Refusal:
    with pytest.raises(Refusal) as refused:
        extras(**fields)
    return refused.value


def test_a_plain_job_has_no_bonds() -> None:
    assert extras() is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"unique_key": "k"}, JobExtras(unique_key="k")),
        (
            {"unique_key": "k", "unique_period": 60, "unique_until": "period"},
            JobExtras(unique_key="k", unique_period_ms=60_000, unique_until=UniqueUntil.PERIOD),
        ),
        ({"unique_key": "k", "unique_until": "start"}, JobExtras(unique_key="k", unique_until=UniqueUntil.START)),
        ({"idempotency_key": "i"}, JobExtras(idempotency_key="i")),
        ({"expire_after": "1m"}, JobExtras(expire_after_ms=60_000)),
        ({"expire_after_ms": 5}, JobExtras(expire_after_ms=5)),
        ({"expire_after": "1m", "expire_after_ms": 5}, JobExtras(expire_after_ms=5)),
        ({"expire_after": "876000h"}, JobExtras(expire_after_ms=876_000 * 3_600_000)),
        ({"retry_jitter": 0.25}, JobExtras(jitter_permille=250)),
        (
            {"depends_on": [job_id(2), job_id(1), job_id(2)], "on_dependency_failure": "cancel"},
            JobExtras(waits_for=(job_id(2), job_id(1)), if_lost=IfLost.CANCEL),
        ),
        (
            {"chain": {"steps": [{"queue": "mail"}, {"queue": "b", "payload": 1}], "on_exit": {"queue": "c"}}},
            JobExtras(chain=Chain("chn_1", 0, (ChainStep("mail"), ChainStep("b", b"1")), None, ChainStep("c"))),
        ),
    ],
)
def test_each_condition_becomes_a_bond(fields: dict[str, Any], expected: JobExtras) -> None:
    assert extras(**fields) == expected


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"unique_key": ""}, "unique_key"),
        ({"unique_key": "a\0b"}, "unique_key"),
        ({"unique_key": "x" * 257}, "unique_key"),
        ({"unique_key": "k", "unique_period": 0}, "unique_period"),
        ({"unique_key": "k", "unique_until": "ever"}, "unique_until"),
        ({"idempotency_key": "a\nb"}, "idempotency_key"),
        ({"expire_after": "soon"}, "expire_after"),
        ({"expire_after": "1752000h"}, "expire_after"),
        ({"expire_after_ms": 174 * 366 * 86_400_000}, "expire_after"),
        ({"expire_after_ms": 2**53}, "expire_after_ms"),
        ({"expire_after_ms": -1}, "expire_after_ms"),
        ({"retry_jitter": 1.5}, "retry_jitter"),
        ({"depends_on": ["nonsense"]}, "depends_on"),
        ({"depends_on": [job_id(1, shard=4)]}, "depends_on"),
        ({"depends_on": [job_id(n) for n in range(DEPENDENCIES_MAX + 1)]}, "depends_on"),
        ({"on_dependency_failure": "weep"}, "on_dependency_failure"),
        ({"chain": {"steps": []}}, "chain.steps"),
        ({"chain": {"steps": [{"queue": "mail"}] * (STEPS_PER_CHAIN_MAX + 1)}}, "chain.steps"),
        ({"chain": {"steps": [{"queue": "other"}]}}, "chain.steps[0].queue"),
    ],
)
def test_a_bad_condition_is_refused_with_its_field(fields: dict[str, Any], field: str) -> None:
    refusal = refusal_of(**fields)

    assert (refusal.code, refusal.field) == ("VALIDATION_ERROR", field)


@pytest.mark.parametrize(
    ("text", "number", "expected"), [(None, None, 7), ("2s", None, 2_000), (None, 3, 3), ("2s", 3, 3), ("2s", 0, 0)]
)
def test_a_span_is_text_or_a_number_and_the_number_wins(text: str | None, number: int | None, expected: int) -> None:
    assert duration_ms(text, number, 7, "delay") == expected


def test_a_span_lasts_at_most_a_year() -> None:
    assert duration_ms("366d", None, 0, "delay") == DELAY_MS_MAX
    with pytest.raises(Refusal):
        duration_ms("367d", None, 0, "delay")


@pytest.mark.parametrize(("bytes_max", "largest"), [(10**6, 1_000), (10, 10)])
def test_the_payload_of_a_step_is_bounded_by_the_server_and_by_its_place(bytes_max: int, largest: int) -> None:
    def step(size: int) -> ChainStep:
        return step_of(an_asking(), StepBody("a", msgspec.Raw(b'"%b"' % (b"x" * (size - 2)))), "step", bytes_max)

    assert len(step(largest).payload) == largest
    with pytest.raises(Refusal) as refused:
        step(largest + 1)
    assert (refused.value.code, refused.value.field) == ("PAYLOAD_TOO_LARGE", "step.payload")


def test_a_chain_is_bounded_as_a_whole_because_every_job_of_it_carries_it() -> None:
    size = CHAIN_BYTES_MAX // 4
    context = an_asking(payload_bytes_max=CHAIN_BYTES_MAX)

    def chain(*sizes: int) -> JobExtras | None:
        steps = [{"queue": "mail", "payload": "x" * (size - 2)} for size in sizes]
        body = msgspec.json.encode({"chain": {"steps": steps[:-2], "on_failure": steps[-2], "on_exit": steps[-1]}})
        terms = decode_body(msgspec.json.Decoder(JobTerms), body)
        return extras_of(context, terms, "mail", "chn_1", "")

    assert chain(size, size, size, size) is not None
    with pytest.raises(Refusal) as refused:
        chain(size, size, size, size + 1)
    assert (refused.value.code, refused.value.field) == ("PAYLOAD_TOO_LARGE", "chain")
