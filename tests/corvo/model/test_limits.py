"""Names that reach keys, and bounds that lean on each other."""

import msgspec
import pytest
from hypothesis import given

from corvo.model import limits
from corvo.model.job import QueueName, WorkerId
from tests.support.strategies import job_ids, queue_names, worker_ids

NAMES_OF_NO_QUEUE = [
    "",
    "a|b",
    "a\0b",
    "a b",
    "a\n",
    "\na",
    ".a",
    "-a",
    "/a",
    "a@b",
    "ä",
    "٣",
    "a" * 201,
]


@given(queue_names, worker_ids, job_ids)
def test_the_names_that_tests_draw_are_legal(queue: str, worker: str, job: str) -> None:
    assert limits.QUEUE_NAME.fullmatch(queue)
    assert msgspec.convert(worker, WorkerId) == worker
    assert limits.JOB_ID.fullmatch(job)


@pytest.mark.parametrize("name", NAMES_OF_NO_QUEUE)
def test_a_name_that_could_forge_a_key_or_a_log_line_is_no_queue(name: str) -> None:
    assert not limits.QUEUE_NAME.fullmatch(name)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(name, QueueName)


@pytest.mark.parametrize("name", [*(name for name in NAMES_OF_NO_QUEUE if name != "a@b"), "@a", "+a"])
def test_a_name_that_could_forge_a_key_or_a_log_line_is_no_worker(name: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(name, WorkerId)


@pytest.mark.parametrize("name", ["a", "Mail", "0", "a.b-c", "a/b:c", "a" * 200])
def test_a_plain_name_is_a_queue(name: str) -> None:
    assert limits.QUEUE_NAME.fullmatch(name)
    assert msgspec.convert(name, QueueName) == name


def test_bounds_that_lean_on_each_other_agree() -> None:
    assert limits.LEASE_MS_MIN <= limits.LEASE_MS_DEFAULT <= limits.LEASE_MS_MAX
    assert limits.POLL_MS_DEFAULT <= limits.POLL_MS_MAX
    assert limits.PAYLOAD_BYTES_DEFAULT <= limits.BODY_BYTES_MAX <= limits.MESSAGE_BYTES_MAX
    assert limits.ENTRY_BYTES_MAX <= limits.MESSAGE_BYTES_MAX
    assert limits.SHARDS_MAX <= 100, "two digits in a job id"
    assert limits.ERRORS_KEPT_PER_JOB >= 1
