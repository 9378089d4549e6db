"""Schedules over HTTP: the whole way from a request to a shard and back."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from corvo.model.sharding import shard_of_schedule
from tests.gateway.asgi import JSON, House, Reply, a_scope
from tests.support.builders import NOW, SECOND
from tests.support.schedules import look

DAY = 86_400 * SECOND


@pytest.fixture
def house() -> Iterator[House]:
    with House() as house:
        yield house


def create(house: House, name: str = "nightly", **fields: Any) -> Reply:
    return house.post("/schedules", {"name": name, "queue": "mail", "cron": "@daily", **fields})


def send(house: House, method: str, path: str, body: Any = None) -> Reply:
    content = b"" if body is None else msgspec.json.encode(body)
    return house.ask(a_scope(method, f"/api/v1{path}", [JSON]), content)


def test_a_schedule_is_made_read_changed_paused_resumed_and_deleted(house: House) -> None:
    made = create(house, payload={"a": 1})
    assert (made.status, made.json["next_at"]) == (201, "2026-01-02T00:00:00.000000000Z")
    assert (made.json["next_run"], made.json["last_run"]) == (made.json["next_at"], None)
    schedule_id = made.json["id"]

    assert house.get(f"/schedules/{schedule_id}").json == house.get("/schedules/nightly").json == made.json

    changed = send(house, "PUT", "/schedules/nightly", {"cron": "0 6 * * *", "timezone": "Asia/Tokyo"})
    assert (changed.status, changed.json["next_slots"][0]) == (200, "2026-01-01T21:00:00.000000000Z")
    assert changed.json["payload"] == {"a": 1}

    paused = house.post("/schedules/nightly/pause")
    assert (paused.status, paused.json["paused"], paused.json.get("next_at")) == (200, True, None)
    resumed = house.post(f"/schedules/{schedule_id}/resume")
    assert (resumed.status, resumed.json["paused"]) == (200, False)

    deleted = send(house, "DELETE", "/schedules/nightly")
    assert (deleted.status, deleted.json) == (200, {"id": schedule_id, "name": "nightly", "status": "deleted"})
    assert send(house, "DELETE", "/schedules/nightly").code == "SCHEDULE_NOT_FOUND"


def test_a_change_may_name_the_schedule_and_not_rename_it(house: House) -> None:
    schedule_id = create(house).json["id"]

    for path in (schedule_id, "nightly"):
        changed = send(house, "PUT", f"/schedules/{path}", {"name": "nightly", "max_retries": 9})
        renamed = send(house, "PUT", f"/schedules/{path}", {"name": "daily", "max_retries": 1})
        assert (changed.status, changed.json["max_retries"]) == (200, 9)
        assert (renamed.status, renamed.json["field"]) == (400, "name")

    assert house.get("/schedules/nightly").json["max_retries"] == 9


def test_the_same_schedule_once_more_is_no_news(house: House) -> None:
    made = create(house)

    again = create(house)

    assert (made.status, again.status) == (201, 200)
    assert again.json == made.json


def test_a_schedule_lives_on_the_shard_of_its_name(house: House) -> None:
    for name in ("a", "b", "c", "d"):
        schedule_id = create(house, name).json["id"]
        shard = shard_of_schedule(name, 4)
        assert schedule_id.startswith(f"s{shard:02d}_sched_")
        assert house.shards.machines[shard].tables.schedules.find(name) is not None


def test_all_schedules_are_listed_by_name_without_what_is_long(house: House) -> None:
    for name in ("c", "a", "b"):
        create(house, name, tags={"x": 1})

    listed = house.get("/schedules")

    assert listed.status == 200
    assert [one["name"] for one in listed.json] == ["a", "b", "c"]
    assert not {"payload", "tags", "next_slots"} & set(listed.json[0])
    assert listed.json[0]["next_at"] == "2026-01-02T00:00:00.000000000Z"


def test_a_name_is_taken_unless_the_terms_are_the_same(house: House) -> None:
    first = create(house)

    assert create(house).json == first.json
    other = create(house, queue="sms")
    assert (other.status, other.code) == (409, "SCHEDULE_EXISTS")


def test_run_makes_a_job_now_and_says_which(house: House) -> None:
    create(house, payload={"a": 1}, unique_key="k")

    made = house.post("/schedules/nightly/run")
    again = house.post("/schedules/nightly/run")

    assert (made.status, made.json["status"]) == (201, "pending")
    assert (again.status, again.json["job_id"], again.json["unique_existing"]) == (200, made.json["job_id"], True)
    assert house.fetch("mail")["payload"] == {"a": 1}


def test_the_job_of_a_slot_reaches_a_worker(house: House) -> None:
    """The fake shards keep everything at home: the queue is where the schedule is."""
    schedule = create(house, payload={"a": 1}).json
    machine = house.shards.machines[shard_of_schedule("nightly", 4)]

    assert look(machine, NOW + DAY) == 1

    [job] = machine.jobs()
    assert job.payload == b'{"a":1}'
    shown = house.get(f"/schedules/{schedule['id']}").json
    assert (shown["fired"], shown["last_slot"]) == (1, "2026-01-02T00:00:00.000000000Z")


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({"cron": "* * *"}, "cron", "a schedule has 5 fields, or 6 with the seconds at the end; this one has 3"),
        ({"cron": "0 25 * * *"}, "cron", "'25' in the hour field is not between 0 and 23"),
        ({"timezone": "Berlin"}, "timezone", "'Berlin' is not a time zone such as UTC or Europe/Berlin"),
        ({"tags": {"slot": 1}}, "tags", "are set by the server"),
        ({"name": "a b"}, "name", "expected 1 to 200 characters of letters, digits and `._:-`"),
        ({"catch_up": "never"}, "catch_up", "expected all, last or skip, not 'never'"),
    ],
)
def test_what_is_wrong_is_a_400_that_names_the_field(
    house: House, body: dict[str, Any], field: str, words: str
) -> None:
    refused = create(house, **body)

    assert (refused.status, refused.code, refused.json["field"]) == (400, "VALIDATION_ERROR", field)
    assert words in refused.json["error"]
    assert house.shards.asked == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/schedules/{}"),
        ("PUT", "/schedules/{}"),
        ("DELETE", "/schedules/{}"),
        ("POST", "/schedules/{}/pause"),
        ("POST", "/schedules/{}/resume"),
        ("POST", "/schedules/{}/run"),
    ],
)
@pytest.mark.parametrize("schedule", ["unknown", "s00_sched_00000000000000000000000001", "s77_sched_x", "a%20b"])
def test_an_unknown_schedule_is_a_404(house: House, method: str, path: str, schedule: str) -> None:
    refused = send(house, method, path.format(schedule), {"queue": "sms"} if method == "PUT" else None)

    assert (refused.status, refused.code) == (404, "SCHEDULE_NOT_FOUND")
