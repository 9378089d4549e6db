"""The chain: an export that was changed anywhere, in any way, is found out, and the first wrong record is named."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.audit import AuditRecord, stamped, to_document
from corvo.model.audit_chain import (
    GENESIS,
    Anchor,
    BrokenChain,
    ChainCheck,
    end_line,
    head_line,
    link,
    parse_anchor,
    record_line,
)

AT = "2026-01-31T09:00:00.000000000Z"


def documents(count: int, first: int = 1) -> list[bytes]:
    names = ("default", "acme")
    return [
        stamped(seq, AT, to_document(AuditRecord(kind="intent", namespace=names[seq % 2], path=f"/{seq}")))
        for seq in range(first, first + count)
    ]


def export(count: int, start: Anchor = Anchor(0, GENESIS), namespace: str = "") -> list[bytes]:
    """The lines that a server would send."""
    lines, last, sent = [head_line(start, namespace)], start, 0
    for seq, document in enumerate(documents(count, start.seq + 1), start.seq + 1):
        own = link(last.hash, document)
        if not namespace or b'"namespace":"%b"' % namespace.encode() in document:
            lines.append(record_line(seq, last.hash, own, document))
            sent += 1
        last = Anchor(seq, own)
    return [*lines, end_line(last, sent)]


def check(lines: list[bytes], expected: Anchor | None = None) -> ChainCheck:
    made = ChainCheck(expected)
    for line in lines:
        made.take(line)
    made.finish()
    return made


def anchor_of(lines: list[bytes], seq: int) -> Anchor:
    made = ChainCheck()
    for line in lines:
        made.take(line)
        if made.last.seq == seq:
            return made.last
    raise AssertionError(seq)


def test_the_hashes_are_pinned() -> None:
    """An export of today must verify with the program of tomorrow."""
    first, second = documents(2)

    assert first == (b'{"seq":1,"at":"2026-01-31T09:00:00.000000000Z","kind":"intent","namespace":"acme","path":"/1"}')
    assert link(GENESIS, first).hex() == "8737ab70fdf1bb00fbb341baa085e82d9433f5ce0ef3ca15172244e5cd82c5a9"
    assert (
        link(link(GENESIS, first), second).hex() == "53585cc96c0a1e437e86e9226e78f005d6d20dfa42e08337a16d01c2def6bff7"
    )


@pytest.mark.parametrize("count", [0, 1, 7])
@pytest.mark.parametrize("namespace", ["", "acme"])
def test_an_export_is_right(count: int, namespace: str) -> None:
    made = check(export(count, namespace=namespace))

    assert made.records == (count if not namespace else (count + 1) // 2)
    assert made.is_partial is bool(namespace)


def test_an_export_may_continue_another() -> None:
    lines = export(5)
    later = export(4, anchor_of(lines, 5))

    assert check(later, expected=anchor_of(lines, 5)).last.seq == 9


@pytest.mark.parametrize("seq", [0, 1, 3, 5])
def test_an_expected_record_is_found(seq: int) -> None:
    lines = export(5)

    check(lines, expected=anchor_of(lines, seq) if seq else Anchor(0, GENESIS))


@pytest.mark.parametrize(
    ("seq", "reason"), [(3, "another than the expected"), (9, "the log ends with 5"), (5, "another than the expected")]
)
def test_an_expected_record_that_differs_or_is_missing(seq: int, reason: str) -> None:
    with pytest.raises(BrokenChain, match=reason):
        check(export(5), expected=Anchor(seq, b"\1" * 32))


def test_an_expected_record_before_the_export() -> None:
    with pytest.raises(BrokenChain, match="begins after 7"):
        check(export(3, Anchor(7, b"\2" * 32)), expected=Anchor(4, b"\1" * 32))


def test_a_whole_new_chain_is_right_in_itself_and_only_an_anchor_tells() -> None:
    true = export(3)
    other = documents(3)
    other[1] = other[1].replace(b"/2", b"/9")
    forged = rebuilt(other)

    check(forged)
    with pytest.raises(BrokenChain):
        check(forged, expected=anchor_of(true, 3))


def rebuilt(found: list[bytes]) -> list[bytes]:
    last = GENESIS
    lines = [head_line(Anchor(0, GENESIS))]
    for seq, document in enumerate(found, 1):
        own = link(last, document)
        lines.append(record_line(seq, last, own, document))
        last = own
    return [*lines, end_line(Anchor(len(found), last), len(found))]


@given(st.integers(1, 6), st.sampled_from(["", "acme"]), st.data())
def test_any_changed_byte_is_found(count: int, namespace: str, data: st.DataObject) -> None:
    lines = export(count, namespace=namespace)
    at = data.draw(st.integers(0, len(lines) - 1))
    place = data.draw(st.integers(0, len(lines[at]) - 1))
    change = data.draw(st.integers(1, 255))
    flipped = bytes([lines[at][place] ^ change])
    changed = lines[at][:place] + flipped + lines[at][place + 1 :]

    if namespace and at in (0, len(lines) - 1):
        return  # the chain covers records; for the rest of an export of one namespace nothing vouches
    with pytest.raises(BrokenChain):
        check([*lines[:at], changed, *lines[at + 1 :]])


@given(st.integers(2, 6), st.data())
def test_any_other_order_is_found(count: int, data: st.DataObject) -> None:
    lines = export(count)
    body = lines[1:-1]
    other = data.draw(st.permutations(body).filter(lambda found: found != body))

    with pytest.raises(BrokenChain):
        check([lines[0], *other, lines[-1]])


@given(st.integers(1, 6), st.data())
def test_any_missing_line_is_found(count: int, data: st.DataObject) -> None:
    lines = export(count)
    at = data.draw(st.integers(0, len(lines) - 1))

    with pytest.raises(BrokenChain):
        check(lines[:at] + lines[at + 1 :])


@given(st.integers(1, 6), st.data())
def test_any_added_line_is_found(count: int, data: st.DataObject) -> None:
    lines = export(count)
    at = data.draw(st.integers(0, len(lines)))
    added = data.draw(st.sampled_from([*lines, record_line(count + 1, GENESIS, GENESIS, documents(1)[0]), b"", b"{}"]))

    with pytest.raises(BrokenChain):
        check([*lines[:at], added, *lines[at:]])


@pytest.mark.parametrize(
    ("break_it", "seq"),
    [
        (lambda lines: [*lines[:2], lines[2].replace(b"/2", b"/8"), *lines[3:]], 2),
        (lambda lines: [*lines[:3], *lines[4:]], 3),
        (lambda lines: [lines[0], *lines[2:]], 1),
        (lambda lines: lines[:-1], 5),
        (lambda lines: [*lines[:-2], lines[-1]], 4),
    ],
)
def test_the_first_wrong_record_is_named(break_it: Callable[[list[bytes]], list[bytes]], seq: int) -> None:
    with pytest.raises(BrokenChain) as broken:
        check(break_it(export(4)))

    assert broken.value.seq == seq


@pytest.mark.parametrize(
    "line", [b"", b"{}", b"\xff", b'{"export":{"version":2,"after":0,"hash":"%b","namespace":""}}' % (b"0" * 64)]
)
def test_what_is_no_export_is_refused(line: bytes) -> None:
    with pytest.raises(BrokenChain):
        check([line])


def test_a_record_of_another_number_is_found_even_with_right_hashes() -> None:
    with pytest.raises(BrokenChain, match="another number inside"):
        check(rebuilt(documents(2, first=5)))


@pytest.mark.parametrize(
    "text", ["", "7", "7:", ":" + "0" * 64, "7:" + "0" * 63, "7:" + "A" * 64, "7:" + "0 " * 32, "-1:" + "0" * 64]
)
def test_what_is_no_anchor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected the number"):
        parse_anchor(text)


def test_an_anchor_is_read() -> None:
    assert parse_anchor("7:" + "0a" * 32) == Anchor(7, b"\x0a" * 32)
