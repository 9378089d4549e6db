"""Pinned bytes: what was written yesterday must be read tomorrow.

`REWRITE=1 pytest tests/golden` writes the files anew; then read the diff with one question: old reader, new bytes;
new reader, old bytes? A file holds the bytes in hexadecimal and, for the reader of the diff, what they decode to.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from corvo import wire
from corvo.model.errors import Refused
from corvo.model.job import decode_job, decode_job_error, decode_minute, decode_queue, decode_worker
from corvo.ops import OPERATIONS
from corvo.queries import QUERIES
from corvo.rules.batches import decode_batch
from corvo.rules.bulk import decode_bulk, decode_memo
from corvo.rules.errands.register import ERRANDS, decode_errand
from corvo.state.access import decode_key, decode_namespace, decode_redaction, decode_role, decode_sso
from corvo.state.audit_log import decode_ends, decode_entry
from corvo.state.event_log import decode_page
from corvo.state.locks import Lock
from corvo.state.schedules import decode_schedule
from corvo.state.tables import decode_applied
from tests.golden import examples
from tests.golden.derive import with_derived

FOLDER = Path(__file__).parent
REWRITE = os.environ.get("REWRITE") == "1"


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


ASKS = {snake(ask.__name__): ask for ask in (*OPERATIONS, *QUERIES)}
BY_NAME = {snake(ask.__name__): ask for ask in OPERATIONS}
RESULT_TYPES = {name: ask.result for name, ask in ASKS.items()}
ALL_OPERATIONS = with_derived(examples.OPERATIONS, BY_NAME)
ALL_RESULTS = with_derived(examples.RESULTS, RESULT_TYPES)
EXAMPLES: dict[str, dict[str, Any]] = {
    "operations": ALL_OPERATIONS,
    "queries": examples.QUERIES,
    "results": ALL_RESULTS,
    "records": examples.RECORDS,
    "errands": examples.ERRANDS,
    "keys": examples.KEYS,
    "wire": examples.WIRE,
}
NAMES = [(folder, name) for folder, members in EXAMPLES.items() for name in members]
_RECORD_DECODERS = {
    "job": decode_job,
    "job_error": decode_job_error,
    "queue": decode_queue,
    "minute": decode_minute,
    "worker": decode_worker,
    "batch": decode_batch,
    "schedule": decode_schedule,
    "api_key": decode_key,
    "role": decode_role,
    "namespace": decode_namespace,
    "sso": decode_sso,
    "redaction": decode_redaction,
    "bulk": decode_bulk,
    "bulk_memo": decode_memo,
    "page": decode_page,
    "lock": msgspec.msgpack.Decoder(Lock).decode,
    "applied": decode_applied,
    "audit_entry": decode_entry,
    "audit_ends": decode_ends,
}
_WIRE_TYPES = {"refused": Refused}


def bytes_of(folder: str, name: str) -> bytes:
    example = EXAMPLES[folder][name]
    return example if isinstance(example, bytes) else wire.encode(example)


def written(raw: bytes, is_msgpack: bool) -> str:
    lines = [raw[at : at + 32].hex(" ", -4) for at in range(0, len(raw), 32)]
    meaning = msgspec.msgpack.decode(raw) if is_msgpack else raw
    return "\n".join([f"# {meaning!r}", *lines]) + "\n"


def read(folder: str, name: str) -> bytes:
    return unhex(FOLDER / folder / f"{name}.hex")


def unhex(path: Path) -> bytes:
    lines = path.read_text().splitlines()
    return bytes.fromhex(" ".join(line for line in lines if not line.startswith("#")))


@pytest.mark.parametrize(("folder", "name"), NAMES, ids=[f"{folder}/{name}" for folder, name in NAMES])
def test_the_bytes_are_the_pinned_ones(folder: str, name: str) -> None:
    path = FOLDER / folder / f"{name}.hex"
    text = written(bytes_of(folder, name), folder != "keys")
    if REWRITE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    assert path.exists(), f"{path} is missing: run REWRITE=1 pytest tests/golden and commit it"
    assert path.read_text() == text, (
        f"the bytes of {folder}/{name} changed. If every reader can read both, run REWRITE=1 and read the diff"
    )


@pytest.mark.parametrize("name", [*ALL_OPERATIONS, *examples.QUERIES])
def test_the_pinned_bytes_of_an_ask_are_read_as_the_example(name: str) -> None:
    folder = "operations" if name in ALL_OPERATIONS else "queries"

    assert wire.decode_ask(read(folder, name)) == EXAMPLES[folder][name]


@pytest.mark.parametrize("name", ALL_RESULTS)
def test_the_pinned_bytes_of_a_result_are_read_as_the_example(name: str) -> None:
    reply = wire.Reply(1, False, read("results", name))

    assert wire.decode_result(ASKS[name], reply) == ALL_RESULTS[name]


@pytest.mark.parametrize("name", examples.RECORDS)
def test_the_pinned_bytes_of_a_record_are_read_as_the_example(name: str) -> None:
    assert _RECORD_DECODERS[name](read("records", name)) == examples.RECORDS[name]


@pytest.mark.parametrize("name", examples.ERRANDS)
def test_the_pinned_bytes_of_an_errand_are_read_as_the_example(name: str) -> None:
    assert decode_errand(read("errands", name)) == examples.ERRANDS[name]


# What former versions wrote. A file is named after the example that followed it, and never rewritten.

FORMER = sorted((FOLDER / "former").glob("*/*.hex"))


@pytest.mark.parametrize("path", FORMER, ids=[f"{path.parent.name}/{path.stem}" for path in FORMER])
def test_the_bytes_of_former_versions_are_still_read(path: Path) -> None:
    folder, name, raw = path.parent.name, path.stem.split(".")[0], unhex(path)

    match folder:
        case "records":
            found = _RECORD_DECODERS[name](raw)
        case "results":
            found = wire.decode_result(ASKS[name], wire.Reply(1, False, raw))
        case "errands":
            found = decode_errand(raw)
        case "wire":
            found = msgspec.msgpack.decode(raw, type=_WIRE_TYPES[name])
        case _:
            found = wire.decode_ask(raw)

    assert is_grown_from(msgspec.msgpack.decode(raw), msgspec.msgpack.decode(wire.encode(found)))


def is_grown_from(old: Any, new: Any) -> bool:
    """The same fields at the same places; what came later stands behind them and says nothing."""
    if not isinstance(old, list) or not isinstance(new, list):
        return bool(old == new)
    grown = all(is_grown_from(*pair) for pair in zip(old, new, strict=False))
    return grown and len(old) <= len(new) and not any(_says_something(value) for value in new[len(old) :])


def _says_something(value: Any) -> bool:
    return any(map(_says_something, value)) if isinstance(value, list) else bool(value)


@pytest.mark.parametrize(
    ("old", "new", "is_grown"),
    [
        ([1, [2]], [1, [2, 0, ""], None, [0, 0]], True),
        ([1, 2], [1], False),
        ([1, 2], [2, 1], False),
        ([1], [1, 5], False),
    ],
)
def test_growth_is_told_from_change(old: Any, new: Any, is_grown: bool) -> None:
    assert is_grown_from(old, new) is is_grown


def test_the_pinned_bytes_of_a_message_are_read() -> None:
    calls, replies = wire.decode_calls(read("wire", "calls")), wire.decode_replies(read("wire", "replies"))
    now, operations = wire.operations_of(read("wire", "entry"))

    assert wire.decode_ask(calls[0].ask) == examples.OPERATIONS["cancel"]
    assert [reply.is_refused for reply in replies] == [False, True]
    assert (now, operations) == (examples.AT, [examples.OPERATIONS["cancel"], examples.OPERATIONS["promote"]])


def test_every_operation_query_and_result_has_an_example() -> None:
    assert set(ALL_OPERATIONS) == {snake(ask.__name__) for ask in OPERATIONS}, "remove it from tests/golden/examples.py"
    assert set(examples.QUERIES) == {snake(ask.__name__) for ask in QUERIES}, "add it to tests/golden/examples.py"
    assert set(ALL_RESULTS) == set(ASKS), "remove its result from tests/golden/examples.py"
    assert set(examples.ERRANDS) == {snake(errand.__name__) for errand in ERRANDS}, "add it to tests/golden/examples.py"


def test_every_pinned_file_has_an_example() -> None:
    pinned = {(path.parent.name, path.stem) for path in FOLDER.glob("*/*.hex")}

    assert pinned == set(NAMES), "delete the file of what no longer exists, and list the operation's number in RETIRED"


@pytest.mark.parametrize("name", examples.RECORDS)
def test_an_example_of_a_record_fills_every_field(name: str) -> None:
    """A field at its default would let its position change unnoticed."""
    assert list(empty_fields(examples.RECORDS[name])) == [], "give every field of the example a value of its own"


def empty_fields(record: msgspec.Struct) -> Iterator[str]:
    """Of the record and of those inside it."""
    for field in record.__struct_fields__:
        value = getattr(record, field)
        if value in (0, "", b"", [], (), None):
            yield field
        elif isinstance(value, msgspec.Struct):
            yield from (f"{field}.{inner}" for inner in empty_fields(value))


def test_a_changed_byte_is_noticed() -> None:
    raw = bytes_of("operations", "cancel")

    assert written(raw, True) != written(raw[:-1] + b"z", True)
