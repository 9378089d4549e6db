"""Stored records: positions for ever, defaults for what came later."""

import msgspec
import pytest

from corvo.model.job import (
    PRIORITY_NAMES,
    JobError,
    Worker,
    decode_job,
    decode_job_error,
    decode_queue,
    decode_worker,
    encode,
    new_queue,
)
from corvo.model.lifecycle import State
from corvo.model.limits import LEASE_MS_DEFAULT
from tests.support.builders import NOW, a_job


def test_every_record_survives_being_stored() -> None:
    job = a_job(state=State.ACTIVE, payload=b'{"a": [1]}', lease_token=7, claim_id=2**63 - 1, worker_id="w1")
    error = JobError(job.id, 1, 1, "boom", "trace", NOW)
    queue = new_queue("mail", NOW)
    worker = Worker("w1", "host", ["mail"], NOW, NOW)

    assert decode_job(encode(job)) == job
    assert decode_job_error(encode(error)) == error
    assert decode_queue(encode(queue)) == queue
    assert decode_worker(encode(worker)) == worker


def test_a_job_of_an_older_version_is_read_with_defaults() -> None:
    stored = msgspec.msgpack.decode(encode(a_job()))

    old = decode_job(msgspec.msgpack.encode(stored[:10]))

    assert old == a_job()
    assert old.lease_ms == LEASE_MS_DEFAULT


def test_a_job_of_a_newer_version_is_read_without_what_is_unknown() -> None:
    stored = msgspec.msgpack.decode(encode(a_job()))

    assert decode_job(msgspec.msgpack.encode([*stored, "from the future"])) == a_job()


def test_a_record_of_the_wrong_shape_is_not_believed() -> None:
    stored = msgspec.msgpack.decode(encode(a_job()))
    stored[2] = 99  # no such state

    with pytest.raises(msgspec.ValidationError):
        decode_job(msgspec.msgpack.encode(stored))


def test_a_new_queue_counts_nothing_and_has_a_cursor_per_priority() -> None:
    queue = new_queue("mail", NOW)

    assert queue.counts == [0] * len(State)
    assert queue.cursors == [0] * len(PRIORITY_NAMES)


def test_priorities_keep_their_stored_numbers() -> None:
    assert PRIORITY_NAMES == ("critical", "high", "normal")
