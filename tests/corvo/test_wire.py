"""What travels between processes: whole messages or a ValueError, entries or a stop."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo import wire
from corvo.endpoint import Operation
from corvo.model.errors import Corrupt, Refusal, Refused
from corvo.model.lifecycle import State
from corvo.ops.jobs.ack import Ack, AckItem
from corvo.ops.jobs.cancel import Cancel
from corvo.ops.jobs.enqueue import Enqueue, NewJob
from corvo.ops.jobs.fail import Fail, Failure
from corvo.ops.jobs.fetch import Fetch
from corvo.queries.job import GetJob
from corvo.wire import Call, Entry, Reply
from tests.support.builders import NOW, enqueue, fetch, job_id
from tests.support.strategies import operations

ids = st.integers(0, 2**63)
calls = st.lists(st.builds(Call, ids, st.integers(0, 10**6), st.binary(max_size=20)), max_size=5)
replies = st.lists(st.builds(Reply, ids, st.booleans(), st.binary(max_size=20)), max_size=5)


@given(calls)
def test_calls_survive_the_wire(sent: list[Call]) -> None:
    assert wire.decode_calls(wire.encode_calls(sent)) == sent


@given(replies)
def test_replies_survive_the_wire(sent: list[Reply]) -> None:
    assert wire.decode_replies(wire.encode_replies(sent)) == sent


@given(operations)
def test_every_operation_survives_the_log(operation) -> None:
    assert wire.operations_of(wire.encode(Entry(NOW, [wire.encode(operation)]))) == (NOW, [operation])


@pytest.mark.parametrize("decode", [wire.decode_calls, wire.decode_replies])
@given(message=st.binary(max_size=60))
def test_bytes_that_are_no_message_of_ours_are_a_value_error(decode, message: bytes) -> None:
    try:
        decode(message)
    except ValueError:
        pass


@pytest.mark.parametrize("decode", [wire.decode_calls, wire.decode_replies])
@pytest.mark.parametrize(
    "message", [b"", b"\xc1", b"\x92\x01", b"\x92\xff\x90", b"\x91" * 100_000, b"\x92\x01\x91\x93\x01\x02\xa1\xff"]
)
def test_damaged_messages_are_a_value_error(decode, message: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w+"):
        decode(message)


@pytest.mark.parametrize(
    ("decode", "message"),
    [
        (wire.decode_calls, msgspec.msgpack.encode([2, []])),
        (wire.decode_replies, msgspec.msgpack.encode([2, []])),
    ],
)
def test_another_version_is_refused_by_its_number(decode, message: bytes) -> None:
    with pytest.raises(ValueError, match=f"wire version 2, this process speaks {wire.VERSION}"):
        decode(message)


@pytest.mark.parametrize(
    ("ask", "result"),
    [
        (Enqueue, [State.PENDING, State.SCHEDULED]),
        (Cancel, True),
        (Fail, [Failure(State.RETRYING, 2, NOW), Refused("LEASE_LOST", "late")]),
    ],
)
def test_a_result_comes_back_as_its_type(ask: type, result: object) -> None:
    assert wire.decode_result(ask, wire.reply_to(7, result)) == result


def test_a_refused_call_comes_back_as_the_refusal() -> None:
    reply = wire.reply_to(7, Refused("OVERLOADED", "later", 300))

    with pytest.raises(Refusal) as refused:
        wire.decode_result(Cancel, reply)

    assert (reply.id, reply.is_refused) == (7, True)
    assert (refused.value.code, refused.value.message, refused.value.retry_after_ms) == ("OVERLOADED", "later", 300)


def test_operations_and_queries_are_told_apart_by_their_number() -> None:
    assert wire.decode_ask(wire.encode(enqueue(1))) == enqueue(1)
    assert wire.decode_ask(wire.encode(GetJob(job_id(1)))) == GetJob(job_id(1))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode([NOW]),
        msgspec.msgpack.encode([NOW, [b"\xc1"]]),
        msgspec.msgpack.encode([NOW, [msgspec.msgpack.encode([99_999])]]),  # an operation of a later version
        msgspec.msgpack.encode([NOW, [wire.encode(fetch())[:-5]]]),
    ],
)
def test_an_entry_that_cannot_be_read_stops_the_replica(payload: bytes) -> None:
    with pytest.raises(Corrupt):
        wire.operations_of(payload)


def test_a_query_in_an_entry_is_corruption() -> None:
    with pytest.raises(Corrupt):
        wire.operations_of(wire.encode(Entry(NOW, [wire.encode(GetJob(job_id(1)))])))


def test_an_operation_of_a_newer_version_is_read_without_what_is_unknown() -> None:
    raw = msgspec.msgpack.decode(wire.encode(enqueue(1)))

    assert wire.decode_ask(msgspec.msgpack.encode([*raw, "from the future"])) == enqueue(1)


@pytest.mark.parametrize(
    "operation",
    [
        Fetch(["q"], "w", "h", claim_id=1, lease_ms=-1),
        Fetch(["q"], "w", "h", claim_id=-1),
        Fetch(["q"], "w", "h", claim_id=1, wait_ms=2**62),
        Enqueue([NewJob("s00_job_" + "0" * 26, "q", b"{}", base_delay_ms=2**62)]),
        Enqueue([NewJob("s00_job_" + "0" * 26, "q", b"{}", scheduled_at=-1)]),
        Ack(1, [AckItem("s00_job_" + "0" * 26, lease_token=-1)]),
    ],
)
def test_numbers_that_no_key_or_clock_can_hold_never_reach_the_log(operation: Operation) -> None:
    with pytest.raises(ValueError, match="Expected `int`"):
        wire.decode_ask(wire.encode(operation))
