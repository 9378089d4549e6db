"""Job ids in what other commands print."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.cli.commands.bodies import BadArgument
from corvo.cli.commands.job_ids import ids_in

A, B = (f"s0{number}_job_01hzy3v7k2m4n6p8q0r2s4t6v8" for number in (1, 2))

names = st.lists(st.from_regex(r"s[0-9]{2}_job_[0-9a-z]{26}", fullmatch=True), unique=True)
TABLE = f"ID    QUEUE\n{A}  mail\n{B}  mail\n2 of 2 jobs, 1.5 ms\n"


@given(names)
def test_every_form_of_a_list_gives_its_ids(ids: list[str]) -> None:
    jobs = [{"id": name, "queue": "mail"} for name in ids]
    lines = [msgspec.json.encode(job).decode() for job in jobs]
    for text in (
        msgspec.json.encode(jobs).decode(),
        msgspec.json.format(msgspec.json.encode(jobs)).decode(),
        msgspec.json.encode(ids).decode(),
        msgspec.json.encode({"jobs": jobs, "has_more": False}).decode(),
        "\n".join(lines),
        "\n".join(ids),
        "ID  QUEUE\n" + "".join(f"{name}  mail  {A}\n" for name in ids) + "3 of 3 jobs, 1 ms\n",
    ):
        assert ids_in(text) == ids


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (f'{{"job_id": "{A}", "status": "pending"}}', [A]),
        (f'"{A}"\n"{B}"\n', [A, B]),
        (f"{A}\n{A}\n", [A]),
        (f"{TABLE}next page: --cursor x\n", [A, B]),
    ],
)
def test_single_jobs_and_repeated_ids(text: str, ids: list[str]) -> None:
    assert ids_in(text) == ids


@given(st.integers(0, len(TABLE) - 24))
def test_a_table_that_was_cut_off_is_refused(length: int) -> None:
    try:
        assert ids_in(TABLE[:length]) == []
    except BadArgument:
        pass


@given(names.filter(bool), st.data())
def test_an_array_that_was_cut_off_is_refused(ids: list[str], data: st.DataObject) -> None:
    text = "[\n" + ",\n".join(f'{{"id": "{name}"}}' for name in ids) + "\n]"

    with pytest.raises(BadArgument):
        ids_in(text[: data.draw(st.integers(1, len(text) - 2))])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f'{{"jobs": [{{"id": "{A}"}}], "has_more": true, "cursor": "c"}}', "one page of a longer list"),
        ("5", "no job id: 5"),
        ("[5]", "no job id: 5"),
        ('[{"queue": "mail"}]', "no job id: null"),
        ("no jobs here", "no job id: no jobs here"),
        (f"{A}\nnonsense", "no job id: nonsense"),
        (f'{{"id": "{A}"}}\n{{"id"', "line 2"),
    ],
)
def test_what_is_no_whole_list_is_refused(text: str, told: str) -> None:
    with pytest.raises(BadArgument, match=told):
        ids_in(text)
