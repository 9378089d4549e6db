"""An operation at work: all slices, taken over half-way, cancelled, and through every kind of trouble."""

import asyncio
from typing import Any

import pytest

from corvo.model.errors import Refusal
from corvo.model.lifecycle import State
from corvo.ops.bulk.act_on_jobs import ActOnJobs
from corvo.ops.bulk.advance_bulk import AdvanceBulk
from corvo.ops.bulk.begin_bulk import BeginBulk
from corvo.ops.bulk.cancel_bulk import CancelBulk
from corvo.queries.bulk import ListBulks
from corvo.rules.bulk import BULK_SHARD, Action, Bulk, Order
from gateway.api.bulk import matching, running
from gateway.api.bulk.bulks import Bulks
from gateway.search import search
from tests.gateway.api.bulk.conftest import BulkHouse
from tests.gateway.fake_shards import a_call


@pytest.fixture(autouse=True)
def _small_slices_and_short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "BULK_SLICE", 4)
    monkeypatch.setattr(running, "PAUSE_S", 0.001)
    monkeypatch.setattr(running.JobReader.__init__, "__defaults__", (0.001,))


async def gone() -> None:
    raise Refusal("SHARD_UNAVAILABLE", "away", retry_after_ms=1_000)


def begin(house: BulkHouse, action: str = "hold", **fields: Any) -> str:
    reply = house.bulk(action, **({"filter": {"state": ["pending"]}} | fields), **{"async": True})
    assert reply.status == 202, reply
    return str(reply.json["bulk_operation_id"])


def shown(house: BulkHouse, bulk_id: str) -> Any:
    return house.get(f"/bulk/{bulk_id}").json


def reports(house: BulkHouse) -> list[AdvanceBulk]:
    return [ask for _, ask in house.shards.asked if isinstance(ask, AdvanceBulk)]


def slices(house: BulkHouse) -> list[list[str]]:
    steps: dict[int, list[str]] = {}
    for _, ask in house.shards.asked:
        if isinstance(ask, ActOnJobs):
            steps.setdefault(ask.step, []).extend(ask.job_ids)
    return list(steps.values())


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("count", [1, 4, 8, 11])
def test_every_job_is_changed_and_counted(bulk_house: BulkHouse, count: int, by_name: bool) -> None:
    jobs = bulk_house.fill(count)
    bulk_id = begin(bulk_house, **({"filter": None, "job_ids": jobs} if by_name else {}))

    assert bulk_house.work() == bulk_id

    told = shown(bulk_house, bulk_id)
    assert (told["status"], told["total"], told["processed"], told["affected"]) == ("completed", count, count, count)
    assert bulk_house.states() == dict.fromkeys(jobs, State.HELD)
    assert [len(some) for some in slices(bulk_house)] == [4] * (count // 4) + ([count % 4] if count % 4 else [])


def test_an_operation_that_matches_nothing_is_over_at_once(bulk_house: BulkHouse) -> None:
    bulk_id = begin(bulk_house)

    bulk_house.work()

    assert (shown(bulk_house, bulk_id)["status"], shown(bulk_house, bulk_id)["percent"]) == ("completed", 100.0)


def test_a_slice_is_put_down_before_it_is_done(bulk_house: BulkHouse) -> None:
    bulk_house.fill(6)
    begin(bulk_house)

    bulk_house.work()

    kinds = [type(ask).__name__ for _, ask in bulk_house.shards.asked if isinstance(ask, ActOnJobs | AdvanceBulk)]
    assert kinds == ["AdvanceBulk", *["ActOnJobs"] * 3, "AdvanceBulk", *["ActOnJobs"] * 2, "AdvanceBulk"]


def test_refused_jobs_are_counted_and_named(bulk_house: BulkHouse) -> None:
    jobs = bulk_house.fill(5)
    bulk_house.post(f"/jobs/{jobs[2]}/cancel")
    bulk_id = begin(bulk_house, filter=None, job_ids=jobs)

    bulk_house.work()

    told = shown(bulk_house, bulk_id)
    assert (told["affected"], told["errors"], told["error_codes"]) == (4, 1, {"WRONG_STATE": 1})
    assert told["error_samples"][0]["job_id"] == jobs[2]
    assert bulk_house.get("/bulk").json[0]["error_samples"] == [], "not in lists"


@pytest.mark.parametrize("action", ["delete", "hold", "cancel", "move"])
@pytest.mark.parametrize("dies_at", range(10))
def test_a_gateway_that_dies_anywhere_is_succeeded_and_nothing_is_done_or_counted_twice(
    bulk_house: BulkHouse, action: str, dies_at: int
) -> None:
    """It dies after so many of its calls had their effect; its successor sees read.db as it is by then."""
    jobs = bulk_house.fill(10)
    move = {"move_to_queue": "q0"} if action == "move" else {}
    bulk_id = begin(bulk_house, action, **move)
    first = bulk_house.run(bulk_house.bulks.running.claim())
    assert first is not None
    calls = 0
    ask = bulk_house.shards.ask

    def dying(shard: int, what: Any) -> Any:
        nonlocal calls
        calls += isinstance(what, ActOnJobs | AdvanceBulk)
        future = ask(shard, what)
        if calls > dies_at:
            raise asyncio.CancelledError
        return future

    bulk_house.shards.ask = dying  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        bulk_house.run(bulk_house.bulks.running.work(first))
    bulk_house.shards.ask = ask  # type: ignore[method-assign]
    mirror_anew(bulk_house)

    bulk_house.bulks = Bulks(
        bulk_house.shards,  # type: ignore[arg-type]
        bulk_house.read_db,
        bulk_house.bulks.running._context,
        "node-1",
        bulk_house.draining,
    )
    assert bulk_house.work() == bulk_id

    told = shown(bulk_house, bulk_id)
    assert (told["status"], told["affected"], told["errors"]) == ("completed", 10, 0)
    expected = {"delete": {}, "hold": dict.fromkeys(jobs, State.HELD), "cancel": dict.fromkeys(jobs, State.CANCELLED)}
    assert bulk_house.states() == expected.get(action, dict.fromkeys(jobs, State.PENDING))


def mirror_anew(house: BulkHouse) -> None:
    """Jobs that are gone are gone from the file, too."""
    house.read_db.close()
    house.written.swap()
    house.mirror()
    reopened = type(house.read_db)(house.written.path)
    house.read_db = reopened


def test_one_that_was_succeeded_lets_go(bulk_house: BulkHouse) -> None:
    bulk_house.fill(6)
    bulk_id = begin(bulk_house)
    old = bulk_house.run(bulk_house.bulks.running.claim())
    other = Bulks(
        bulk_house.shards,  # type: ignore[arg-type]
        bulk_house.read_db,
        bulk_house.bulks.running._context,
        "node-1",
        bulk_house.draining,
    )
    assert bulk_house.run(other.running.claim()) is not None
    bulk_house.shards.asked.clear()

    assert old is not None
    bulk_house.run(bulk_house.bulks.running.work(old))

    assert len(reports(bulk_house)) == 1, "its first report is refused, and it goes no further"
    assert shown(bulk_house, bulk_id)["status"] == "running"
    assert slices(bulk_house) == []


def test_a_cancelled_operation_stops_after_its_slice(bulk_house: BulkHouse) -> None:
    jobs = bulk_house.fill(10)
    bulk_id = begin(bulk_house)
    ask = bulk_house.shards.ask

    def cancelling(shard: int, what: Any) -> Any:
        if isinstance(what, ActOnJobs) and what.step == 2:
            bulk_house.shards.ask = ask  # type: ignore[method-assign]
            ask(BULK_SHARD, CancelBulk(bulk_id))
        return ask(shard, what)

    bulk_house.shards.ask = cancelling  # type: ignore[method-assign]
    bulk_house.work()

    told = shown(bulk_house, bulk_id)
    assert (told["status"], told["affected"], told["cancel_requested"]) == ("cancelled", 8, True)
    assert sum(state is State.HELD for state in bulk_house.states().values()) == 8
    assert len(jobs) == 10
    assert bulk_house.post(f"/bulk/{bulk_id}/cancel").json["status"] == "cancelled"


def test_a_shard_that_is_away_is_waited_for(bulk_house: BulkHouse) -> None:
    bulk_house.fill(6)
    bulk_id = begin(bulk_house)
    bulk_house.bulks.running._acting._ask_again_s = 0.001
    ask = bulk_house.shards.ask
    left = [1] * 5

    def away(shard: int, what: Any) -> Any:
        if shard == 1 and isinstance(what, ActOnJobs) and left:
            left.pop()
            return a_call(shard, what, gone())
        return ask(shard, what)

    bulk_house.shards.ask = away  # type: ignore[method-assign]
    bulk_house.work()
    assert left == []

    told = shown(bulk_house, bulk_id)
    assert (told["status"], told["affected"], told["errors"]) == ("completed", 6, 0)


def test_whoever_cancels_an_operation_that_waits_for_a_shard_is_heard(bulk_house: BulkHouse) -> None:
    bulk_house.fill(6)
    bulk_id = begin(bulk_house)
    bulk_house.bulks.running._acting._ask_again_s = 0.001
    ask = bulk_house.shards.ask
    tries = 0

    def away(shard: int, what: Any) -> Any:
        nonlocal tries
        if shard == 1 and isinstance(what, ActOnJobs):
            tries += 1
            if tries == 3:
                ask(BULK_SHARD, CancelBulk(bulk_id))
            return a_call(shard, what, gone())
        return ask(shard, what)

    bulk_house.shards.ask = away  # type: ignore[method-assign]
    bulk_house.work()
    bulk_house.shards.ask = ask  # type: ignore[method-assign]

    told = shown(bulk_house, bulk_id)
    assert (told["status"], told["processed"], told["error_codes"]) == ("cancelled", 4, {"SHARD_UNAVAILABLE": 1})


def test_a_search_that_is_not_to_be_had_is_waited_for_and_one_that_is_wrong_fails_the_operation(
    bulk_house: BulkHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    bulk_house.fill(6)
    waits, fails = begin(bulk_house), begin(bulk_house)
    troubles = [Refusal("READ_DB_UNAVAILABLE", "being built")] * 3
    answer = search.answer

    async def troubled(*arguments: Any) -> Any:
        if troubles:
            raise troubles.pop()
        return await answer(*arguments)

    monkeypatch.setattr(search, "answer", troubled)
    bulk_house.work()
    assert (shown(bulk_house, waits)["status"], shown(bulk_house, waits)["affected"]) == ("completed", 6)

    troubles.append(Refusal("VALIDATION_ERROR", "filter: no longer understood"))
    bulk_house.work()
    told = shown(bulk_house, fails)
    assert (told["status"], told["error"]) == ("failed", "filter: no longer understood (VALIDATION_ERROR)")


def test_a_search_that_is_too_slow_again_and_again_fails_the_operation(
    bulk_house: BulkHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    bulk_id = begin(bulk_house)

    async def slow(*arguments: Any) -> Any:
        raise Refusal("DEADLINE_EXCEEDED", "narrow it")

    monkeypatch.setattr(search, "answer", slow)
    bulk_house.work()

    assert shown(bulk_house, bulk_id)["error"] == "narrow it (DEADLINE_EXCEEDED)"


def test_a_filter_of_a_newer_version_fails_the_operation(bulk_house: BulkHouse) -> None:
    bulk_id = f"bulk_{7:026x}"
    machine = bulk_house.shards.machines[BULK_SHARD]
    machine.apply(BeginBulk(bulk_id, Order(Action.HOLD), b'{"from_the_future":1}', [], 1, True))

    bulk_house.work()

    assert "this gateway cannot decode it" in shown(bulk_house, bulk_id)["error"]


def test_several_operations_are_worked_on_by_themselves(bulk_house: BulkHouse) -> None:
    jobs = bulk_house.fill(9)
    ids = [begin(bulk_house, action, filter=None, job_ids=jobs[n::3]) for n, action in enumerate(("hold",) * 3)]

    async def work() -> None:
        bulk_house.bulks.start()
        async with asyncio.timeout(10):
            while bulk_house.states() != dict.fromkeys(jobs, State.HELD) or await still_open():
                await asyncio.sleep(0.001)
        await bulk_house.bulks.stop()

    async def still_open() -> list[Bulk]:
        found: list[Bulk] = await bulk_house.shards.ask(BULK_SHARD, ListBulks())
        return found

    bulk_house.run(work())

    assert {shown(bulk_house, bulk_id)["affected"] for bulk_id in ids} == {3}


def test_with_nothing_to_do_nothing_is_written(bulk_house: BulkHouse) -> None:
    bulk_house.shards.asked.clear()

    assert bulk_house.run(bulk_house.bulks.running.claim()) is None

    assert [type(ask).__name__ for _, ask in bulk_house.shards.asked] == ["ListBulks"]
