"""Records of the audit log: bounded, valid UTF-8, and byte for byte what was stored."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.audit import (
    AuditRecord,
    bounded,
    bounded_details,
    decode_record,
    is_document,
    long_text,
    stamped,
    to_document,
)
from corvo.model.limits import AUDIT_DETAILS_BYTES_MAX, AUDIT_RECORD_BYTES_MAX, AUDIT_TEXT_CHARS_MAX, TEXT_CHARS_MAX

any_text = st.text(st.characters(), max_size=600)  # surrogates too: a token's claims may hold them


def test_fields_at_their_default_are_left_out_and_null_settings_are_kept() -> None:
    document = to_document(AuditRecord(kind="intent", namespace="default", before=None))

    assert document == b'{"kind":"intent","namespace":"default","before":null}'


def test_a_stamped_document_begins_with_number_and_time() -> None:
    document = stamped(7, "2026-01-31T09:00:00.000000000Z", to_document(AuditRecord(kind="denied", namespace="acme")))
    record = decode_record(document)

    assert document.startswith(b'{"seq":7,"at":"2026-01-31T09:00:00.000000000Z","kind":"denied"')
    assert (record.seq, record.at, record.namespace) == (7, "2026-01-31T09:00:00.000000000Z", "acme")


def test_a_record_of_a_later_version_is_read() -> None:
    record = decode_record(b'{"seq":1,"at":"","kind":"something new","namespace":"default","more":[1]}')

    assert record.kind == "something new"


@given(any_text)
def test_texts_are_cut_and_always_utf_8(text: str) -> None:
    assert len(bounded(text)) <= TEXT_CHARS_MAX
    assert len(long_text(text)) <= AUDIT_TEXT_CHARS_MAX
    msgspec.json.encode(bounded(text))
    assert bounded(bounded(text)) == bounded(text)


@pytest.mark.parametrize("size", [0, AUDIT_DETAILS_BYTES_MAX - 8, AUDIT_DETAILS_BYTES_MAX])
def test_details_that_are_too_long_are_replaced_by_their_size(size: int) -> None:
    details = {"a": "x" * size}
    found = bounded_details(details)

    assert len(msgspec.json.encode(found)) <= AUDIT_DETAILS_BYTES_MAX
    assert found == (details if size + 8 <= AUDIT_DETAILS_BYTES_MAX else {"omitted_bytes": size + 8})


@given(any_text, any_text, st.integers(0, 40_000))
def test_a_record_is_never_longer_than_its_bound(principal: str, path: str, size: int) -> None:
    record = AuditRecord(
        kind="intent",
        namespace="default",
        principal=bounded(principal),
        path=long_text(path),
        target={"a": "x" * size},
        change={"b": "y" * size},
        before={"c": "z" * size},
    )
    document = to_document(record)

    assert len(document) <= AUDIT_RECORD_BYTES_MAX
    assert is_document(document)
    assert decode_record(document).principal == bounded(principal)


@pytest.mark.parametrize("document", [b"", b"{}", b"[]", b'{"kind":"intent"', b'{"seq":1,"kind":"intent"}'])
def test_what_is_no_document_is_told_apart(document: bytes) -> None:
    assert not is_document(document)
