"""Tables that fit a width."""

from hypothesis import given
from hypothesis import strategies as st

from corvo.cli.screen.top.grid import Cell, Column, Placed, Row, heading, layout, line, matching, sorted_rows

COLUMNS = (Column("QUEUE", width_min=6), Column("PEND", True), Column("NOTE", rank=2), Column("LAST", rank=1))


def a_row(key: str, *texts: str) -> Row:
    return Row(key, tuple(map(Cell, texts)))


ROWS = [a_row("a", "mail", "12", "something long to say", "3s"), a_row("b", "sms", "7", "", "1m")]


def drawn(width: int) -> list[str]:
    placed = layout(COLUMNS, ROWS, width)
    return [heading(COLUMNS, placed, None, False).plain, *(line(COLUMNS, placed, row).plain for row in ROWS)]


def test_columns_are_aligned_numbers_to_the_right() -> None:
    assert drawn(60) == [
        "QUEUE    PEND  NOTE                   LAST ",
        "mail       12  something long to say  3s   ",
        "sms         7                         1m   ",
    ]


def test_what_does_not_fit_is_shortened_and_then_left_out() -> None:
    assert drawn(34)[1] == "mail       12  something l…  3s   "
    assert drawn(22)[1] == "mail       12  3s   ", "the column with the highest rank goes first"
    assert drawn(14)[1] == "mail       12", "then the next"


def test_a_column_without_a_word_is_left_out_where_it_may() -> None:
    columns = (Column("QUEUE"), Column("LIMITS", is_optional=True))

    assert [place.column for place in layout(columns, [a_row("a", "mail", "")], 80)] == [0]
    assert [place.column for place in layout(columns, [a_row("a", "mail", "8 at once")], 80)] == [0, 1]


def test_the_sorted_column_has_an_arrow_and_sorting_moves_nothing() -> None:
    placed = layout(COLUMNS, ROWS, 60)

    up, down = (heading(COLUMNS, placed, 1, is_reversed).plain for is_reversed in (False, True))

    assert up == "QUEUE   PEND↑  NOTE                   LAST "
    assert down == up.replace("↑", "↓")


@given(
    st.lists(st.tuples(*[st.text(max_size=90)] * 4), max_size=5),
    st.integers(8, 220),
)
def test_no_line_is_wider_than_the_screen_and_none_does_harm(texts: list[tuple[str, ...]], width: int) -> None:
    rows = [a_row(str(number), *row) for number, row in enumerate(texts)]
    placed = layout(COLUMNS, rows, width)

    lines = [heading(COLUMNS, placed, 0, True), *(line(COLUMNS, placed, row) for row in rows)]

    assert all(one.cell_len <= width for one in lines)
    assert len({one.cell_len for one in lines}) == 1, "columns stand under each other"
    assert all(char.isprintable() for one in lines for char in one.plain)


def test_rows_are_sorted_by_value_and_equal_ones_by_key() -> None:
    rows = [
        Row("b", (Cell("12k", value=12_000),)),
        Row("c", (Cell("9", value=9),)),
        Row("a", (Cell("9", value=9),)),
        Row("d", (Cell("?"),)),
    ]

    assert [row.key for row in sorted_rows(rows, 0, False)] == ["a", "c", "b", "d"], "words come after numbers"
    assert [row.key for row in sorted_rows(rows, None, True)] == ["b", "c", "a", "d"]


def test_every_word_must_occur_in_some_cell() -> None:
    assert [row.key for row in matching(ROWS, "MAIL 3s")] == ["a"]
    assert matching(ROWS, "mail 1m") == []
    assert matching(ROWS, "") == ROWS


def test_a_column_wider_than_the_screen_is_cut() -> None:
    assert layout((Column("A-LONG-HEADING"),), [], 5) == [Placed(0, 5)]
