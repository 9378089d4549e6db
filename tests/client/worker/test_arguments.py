"""Payloads from calls, and calls from payloads."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.client.worker.arguments import Arguments, BadArguments, to_json


@dataclass
class Address:
    street: str
    number: int = 1


class Mail(msgspec.Struct):
    to: str
    at: datetime | None = None


def send(to: str, count: int = 1, *, urgent: bool = False) -> None: ...


def there_and_back(function: Any, *args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    arguments = Arguments(function)
    return arguments.read(to_json(arguments.payload(args, kwargs)))


def test_a_payload_has_the_names_of_the_parameters_and_no_defaults() -> None:
    assert Arguments(send).payload(("a@b.c",), {}) == {"to": "a@b.c"}
    assert Arguments(send).payload(("a@b.c", 2), {"urgent": True}) == {"to": "a@b.c", "count": 2, "urgent": True}


@given(st.text(), st.none() | st.integers(-(2**53), 2**53), st.none() | st.booleans())
def test_arguments_survive_the_way(to: str, count: int | None, urgent: bool | None) -> None:
    given_ = {name: value for name, value in {"count": count, "urgent": urgent}.items() if value is not None}

    args, kwargs = there_and_back(send, to, **given_)

    assert Arguments(send).payload(args, kwargs) == {"to": to, **given_}


def test_dataclasses_structs_and_dates_arrive_as_what_they_were() -> None:
    def move(where: Address, mail: Mail, many: list[Address], when: datetime) -> None: ...

    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    given_ = (Address("Elm"), Mail("a", noon), [Address("Oak", 2)], noon)

    assert there_and_back(move, *given_) == (given_, {})


def test_pydantic_models_arrive_as_models_and_are_checked() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Order(pydantic.BaseModel):  # type: ignore[name-defined,misc]
        id: int
        lines: list[str] = []

    def pack(order: Order, again: list[Order]) -> None: ...

    given_ = (Order(id=7, lines=["a"]), [Order(id=8)])
    assert there_and_back(pack, *given_) == (given_, {})
    with pytest.raises(BadArguments, match="id"):
        Arguments(pack).read(b'{"order": {"id": "seven"}, "again": []}')


def test_the_first_parameter_of_a_bound_function_is_the_context() -> None:
    def work(ctx: object, n: int) -> None: ...

    assert Arguments(work, is_bound=True).payload((3,), {}) == {"n": 3}
    assert Arguments(work, is_bound=True).read(b'{"n": 3}') == ((3,), {})


def test_keyword_arguments_without_names_are_kept() -> None:
    def work(n: int, **more: Any) -> None: ...

    assert there_and_back(work, 1, a=2, b="c") == ((1,), {"a": 2, "b": "c"})


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        (b"{}", "to is missing"),
        (b'{"to": 5}', r"Expected `str`, got `int` - at `\$.to`"),
        (b'{"to": "a", "cc": "b"}', "no parameter cc"),
        (b"[]", "no object"),
        (b"nonsense", "malformed"),
        (b"[" * 3000, "cannot take"),
    ],
)
def test_a_payload_that_does_not_fit_is_refused_with_what_and_where(payload: bytes, told: str) -> None:
    with pytest.raises(BadArguments, match=told):
        Arguments(send).read(payload)


def test_a_step_gets_the_result_before_it_in_its_first_open_parameter() -> None:
    def pack(box: str, paid: dict[str, float]) -> None: ...

    payload = b'{"previous_job_id": "x", "previous_result": {"paid": 12.5}, "box": "small"}'
    assert Arguments(pack).read(payload) == (("small", {"paid": 12.5}), {})


def test_a_step_that_wants_no_result_gets_none() -> None:
    assert Arguments(send).read(b'{"previous_job_id": "x", "previous_result": 1, "to": "a"}') == (("a",), {})


def test_what_the_server_adds_goes_to_those_who_name_it() -> None:
    def refund(error: str, failed_step: int) -> None: ...

    payload = b'{"failed_job_id": "x", "failed_step": 1, "error": "no stock"}'
    assert Arguments(refund).read(payload) == (("no stock", 1), {})


@pytest.mark.parametrize(
    "function",
    [lambda *numbers: None, print],
)
def test_positions_without_names_are_refused(function: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        Arguments(function)


def test_what_is_no_json_is_refused_with_a_sentence() -> None:
    with pytest.raises(TypeError, match="a object is no JSON"):
        to_json({"a": object()})
