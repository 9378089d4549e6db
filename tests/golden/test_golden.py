"""Pinned bytes: what was written yesterday must be read tomorrow.

`REWRITE=1 pytest tests/golden` writes the files anew; then read the diff with one question: old reader, new bytes;
new reader, old bytes? A file holds the bytes in hexadecimal and, for the reader of the diff, what they decode to.
"""

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from corvo import wire
from corvo.job import decode_job, decode_job_error, decode_queue, decode_worker
from corvo.ops import OPERATIONS
from corvo.queries import QUERIES
from corvo.state.tables import decode_applied
from tests.golden import examples

FOLDER = Path(__file__).parent
REWRITE = os.environ.get("REWRITE") == "1"
EXAMPLES: dict[str, dict[str, Any]] = {
    "operations": examples.OPERATIONS,
    "queries": examples.QUERIES,
    "results": examples.RESULTS,
    "records": examples.RECORDS,
    "keys": examples.KEYS,
    "wire": examples.WIRE,
}
NAMES = [(folder, name) for folder, members in EXAMPLES.items() for name in members]
_RECORD_DECODERS = {
    "job": decode_job,
    "job_error": decode_job_error,
    "queue": decode_queue,
    "worker": decode_worker,
    "applied": decode_applied,
}


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


ASKS = {snake(ask.__name__): ask for ask in (*OPERATIONS, *QUERIES)}


def bytes_of(folder: str, name: str) -> bytes:
    example = EXAMPLES[folder][name]
    return example if isinstance(example, bytes) else wire.encode(example)


def written(raw: bytes, is_msgpack: bool) -> str:
    lines = [raw[at : at + 32].hex(" ", -4) for at in range(0, len(raw), 32)]
    meaning = msgspec.msgpack.decode(raw) if is_msgpack else raw
    return "\n".join([f"# {meaning!r}", *lines]) + "\n"


def read(folder: str, name: str) -> bytes:
    lines = (FOLDER / folder / f"{name}.hex").read_text().splitlines()
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


@pytest.mark.parametrize("name", [*examples.OPERATIONS, *examples.QUERIES])
def test_the_pinned_bytes_of_an_ask_are_read_as_the_example(name: str) -> None:
    folder = "operations" if name in examples.OPERATIONS else "queries"

    assert wire.decode_ask(read(folder, name)) == EXAMPLES[folder][name]


@pytest.mark.parametrize("name", examples.RESULTS)
def test_the_pinned_bytes_of_a_result_are_read_as_the_example(name: str) -> None:
    reply = wire.Reply(1, False, read("results", name))

    assert wire.decode_result(ASKS[name], reply) == examples.RESULTS[name]


@pytest.mark.parametrize("name", examples.RECORDS)
def test_the_pinned_bytes_of_a_record_are_read_as_the_example(name: str) -> None:
    assert _RECORD_DECODERS[name](read("records", name)) == examples.RECORDS[name]


def test_the_pinned_bytes_of_a_message_are_read() -> None:
    calls, replies = wire.decode_calls(read("wire", "calls")), wire.decode_replies(read("wire", "replies"))
    now, operations = wire.operations_of(read("wire", "entry"))

    assert wire.decode_ask(calls[0].ask) == examples.OPERATIONS["cancel"]
    assert [reply.is_refused for reply in replies] == [False, True]
    assert (now, operations) == (examples.AT, [examples.OPERATIONS["cancel"], examples.OPERATIONS["promote"]])


def test_every_operation_query_and_result_has_an_example() -> None:
    assert set(examples.OPERATIONS) == {snake(ask.__name__) for ask in OPERATIONS}, "add it to tests/golden/examples.py"
    assert set(examples.QUERIES) == {snake(ask.__name__) for ask in QUERIES}, "add it to tests/golden/examples.py"
    assert set(examples.RESULTS) == set(ASKS), "add its result to tests/golden/examples.py"


def test_every_pinned_file_has_an_example() -> None:
    pinned = {(path.parent.name, path.stem) for path in FOLDER.glob("*/*.hex")}

    assert pinned == set(NAMES), "delete the file of what no longer exists, and list the operation's number in RETIRED"


@pytest.mark.parametrize("name", ["job", "queue", "worker", "job_error"])
def test_an_example_of_a_record_fills_every_field(name: str) -> None:
    """A field at its default would let its position change unnoticed."""
    record = examples.RECORDS[name]

    values = [getattr(record, field) for field in record.__struct_fields__]

    assert all(value not in (0, "", b"", []) for value in values), "give every field of the example a value of its own"


def test_a_changed_byte_is_noticed() -> None:
    raw = bytes_of("operations", "cancel")

    assert written(raw, True) != written(raw[:-1] + b"z", True)
