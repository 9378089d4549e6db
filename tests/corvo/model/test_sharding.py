"""Which shard a queue or a job belongs to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.errors import Refusal
from corvo.model.ids import Minter
from corvo.model.limits import SHARDS_MAX
from corvo.model.sharding import fnv32a, shard_of_job, shard_of_queue, shard_of_schedule
from tests.support.builders import Clock, job_id
from tests.support.strategies import queue_names


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0x811C9DC5),
        ("a", 0xE40C292C),
        ("b", 0xE70C2DE5),
        ("foo", 0xA9F37ED7),
        ("foobar", 0xBF9CF968),
        ("chongo was here!\n", 0xD49930D5),
    ],
)
def test_fnv32a_gives_the_published_vectors(text: str, value: int) -> None:
    assert fnv32a(text) == value


@given(queue_names, st.integers(1, SHARDS_MAX))
def test_a_queue_has_one_shard_and_it_exists(queue: str, shard_count: int) -> None:
    assert shard_of_queue(queue, shard_count) == fnv32a(queue) % shard_count
    assert 0 <= shard_of_queue(queue, shard_count) < shard_count


@pytest.mark.parametrize("shard", [0, 1, 9, 10, 63])
def test_the_shard_of_a_minted_id_is_read_back(shard: int) -> None:
    assert shard_of_job(Minter(Clock(), 5).job_id(shard), SHARDS_MAX) == shard


@pytest.mark.parametrize(
    "stranger",
    [
        "",
        "j1",
        job_id(1, shard=4),  # a shard that does not exist here
        job_id(1) + "\n",
        job_id(1) + "0",
        job_id(1)[:-1],
        job_id(1).upper(),
        "s00_job_" + "0" * 25 + "\0",
        "s00_job_" + "0" * 25 + "|",
        "s٠٠_job_" + "0" * 26,
    ],
)
def test_an_id_that_no_shard_can_have_minted_is_unknown(stranger: str) -> None:
    with pytest.raises(Refusal) as refused:
        shard_of_job(stranger, 4)

    assert refused.value.code == "JOB_NOT_FOUND"


def test_a_refused_id_is_shown_shortened() -> None:
    with pytest.raises(Refusal) as refused:
        shard_of_job("x" * 10_000, 4)

    assert len(refused.value.message) < 200


@pytest.mark.parametrize("shard", [0, 9, 63])
def test_the_shard_of_a_schedule_is_in_its_id_and_follows_from_its_name(shard: int) -> None:
    assert shard_of_schedule(Minter(Clock(), 5).schedule_id(shard), SHARDS_MAX) == shard
    assert shard_of_schedule("nightly", SHARDS_MAX) == fnv32a("nightly") % SHARDS_MAX


@pytest.mark.parametrize("name", ["s04_sched_00000000000000000000000001", "s00_sched_1", "a/b", "", "a" * 201])
def test_what_no_schedule_can_be_called_has_no_shard(name: str) -> None:
    with pytest.raises(Refusal) as refused:
        shard_of_schedule(name, 4)

    assert refused.value.code == "SCHEDULE_NOT_FOUND"
