"""Ids and names of another tenant: answered exactly as those that do not exist, byte for byte.

No shard is asked about a foreign id, whether something has it or not, so that not even the time tells."""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import pytest

from corvo.endpoint import Endpoint
from corvo.ops.access.touch_keys import TouchKeys
from corvo.ops.bulk.begin_bulk import BeginBulk
from corvo.queries.access.follow_access import FollowAccess
from corvo.rules.bulk import Action, Order
from gateway.app import ENDPOINTS
from gateway.examples import QUERIES
from tests.gateway.access.keyed_house import Actor, KeyedHouse, Told
from tests.gateway.search.conftest import Written
from tests.support.read_dbs import FilePlace

QUEUE = "letters"
_ID = re.compile(r"(?<=_)1[0-9a-f]{15,25}")  # the part of an id that names one thing


class Things(NamedTuple):
    """What one tenant has: a parameter of a path → what it stands for."""

    job_id: str
    batch_id: str
    schedule_id: str
    bulk_id: str
    key_hash: str
    name: str
    worker_id: str

    def absent(self) -> "Things":
        """Ids of the same tenant that nothing has."""
        changed = {
            field: _ID.sub(lambda found: "1" + "0" * (len(found[0]) - 1), value)
            for field, value in self._asdict().items()
        }
        return Things(**{**changed, "key_hash": "0" * 64, "name": "nothing", "worker_id": "no-one"})

    def hidden_in(self, text: str) -> str:
        for value in sorted(self, key=len, reverse=True):
            text = text.replace(value, "IT")
        return text


def _without_new_ids(text: str) -> str:
    return re.sub(r"s\d\d_job_1[0-9a-f]+_beta", "NEW", text)


def things_of(house: KeyedHouse, actor: Actor) -> Things:
    def ask(method: str, path: str, body: Any) -> Any:
        told = house.tell(method, path, actor.key, body)
        assert told.status in (200, 201, 202), told
        return told.json

    job = ask("POST", "/enqueue", {"queue": QUEUE})["job_id"]
    ask("POST", "/enqueue", {"queue": QUEUE})
    ask("POST", "/fetch", {"queues": [QUEUE], "worker_id": "their-worker", "timeout": 0})
    batch = ask("POST", "/batch", {})["batch_id"]
    schedule = ask("POST", "/schedules", {"name": "nightly", "queue": QUEUE, "cron": "0 6 * * *"})["id"]
    key = ask("POST", "/auth/keys", {"name": "another", "role": "worker"})["key_hash"]
    bulk = f"bulk_{'1' + 'a' * 25}_{actor.namespace}"
    house.shards.machines[0].one(BeginBulk(bulk, Order(Action.HOLD), b"{}", [job], 1, True))
    return Things(job, batch, schedule, bulk, key, QUEUE, "their-worker")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedHouse]:
    written = Written(FilePlace(tmp_path_factory.mktemp("foreign")))
    written.put_cursor(index=100)
    with KeyedHouse(written.path, 4, "acme", "beta") as house:
        yield house
    written.close()


@pytest.fixture(scope="module")
def acme(house: KeyedHouse) -> Things:
    return things_of(house, house.make("admin", "acme"))


@pytest.fixture(scope="module")
def strangers(house: KeyedHouse) -> dict[str, Actor]:
    made = [house.make("admin", "beta"), house.make("operator", "default")]
    return {actor.title: actor for actor in made}


STRANGERS = ["admin of beta", "operator of default"]
WITH_IDS = [endpoint for endpoint in ENDPOINTS if any(f"{{{field}}}" in endpoint.path for field in Things._fields)]


def asked_of(house: KeyedHouse, actor: Actor, method: str, path: str, body: Any) -> tuple[Told, list[str]]:
    """The answer, and what was asked of shards for it."""
    house.shards.asked.clear()
    told = house.tell(method, path, actor.key, body)
    return told, [type(ask).__name__ for _, ask in house.shards.asked if not isinstance(ask, FollowAccess | TouchKeys)]


def body_of(endpoint: Endpoint) -> Any:
    return endpoint.example if endpoint.body is not None else None


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize("endpoint", WITH_IDS, ids=lambda endpoint: endpoint.name)
def test_a_foreign_id_in_a_path_is_answered_like_an_absent_one(
    endpoint: Endpoint, stranger: str, house: KeyedHouse, acme: Things, strangers: dict[str, Actor]
) -> None:
    before = house.changes_of("acme")

    def ask(things: Things) -> tuple[int, str, list[str]]:
        parameters = {**things._asdict(), "role": "worker", "namespace": "acme"}
        query = QUERIES.get(endpoint.name, "")
        path = endpoint.path.format(**parameters) + (f"?{query}" if query else "")
        told, asked = asked_of(house, strangers[stranger], endpoint.method, path, body_of(endpoint))
        return told.status, things.hidden_in(told.content.decode()), asked

    status, content, asked = ask(acme)

    assert (status, content, asked) == ask(acme.absent())
    if not {"{name}", "{worker_id}"} & set(endpoint.path.split("/")) and "{schedule_id}" not in endpoint.path:
        assert status in (403, 404), content
    if any(kind in endpoint.path for kind in ("{job_id}", "{batch_id}", "{bulk_id}")):
        assert asked == [], "a shard was asked: its time tells foreign ids from others"
    assert house.changes_of("acme") == before


IN_BODIES: dict[str, Callable[[Things], Any]] = {
    "bulk_get": lambda it: {"ids": [it.job_id]},
    "ack_batch": lambda it: {"acks": [{"job_id": it.job_id, "lease_token": 1}]},
    "fail_batch": lambda it: {"fails": [{"job_id": it.job_id, "lease_token": 1, "error": "e"}]},
    "heartbeat": lambda it: {"jobs": {it.job_id: {"lease_token": 1}}},
    "enqueue": lambda it: {"queue": "mine", "batch_id": it.batch_id},
    "enqueue_batch": lambda it: {"jobs": [{"queue": "mine", "depends_on": [it.job_id]}]},
    "delete_key": lambda it: {"key_hash": it.key_hash},
}
BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}


@pytest.mark.parametrize("name", IN_BODIES)
def test_a_foreign_id_in_a_body_is_answered_like_an_absent_one(
    name: str, house: KeyedHouse, acme: Things, strangers: dict[str, Actor]
) -> None:
    endpoint, before = BY_NAME[name], house.changes_of("acme")

    def ask(things: Things) -> tuple[int, str]:
        told, _ = asked_of(house, strangers["admin of beta"], endpoint.method, endpoint.path, IN_BODIES[name](things))
        return told.status, _without_new_ids(things.hidden_in(told.content.decode()))

    assert ask(acme) == ask(acme.absent())
    assert house.changes_of("acme") == before


def test_a_foreign_id_in_a_frame_is_answered_like_an_absent_one(
    house: KeyedHouse, acme: Things, strangers: dict[str, Actor]
) -> None:
    before = house.changes_of("acme")

    def ask(things: Things) -> str:
        frame = {
            "id": 1,
            "ack": [{"job_id": things.job_id, "lease_token": 1}],
            "fail": [{"job_id": things.job_id, "lease_token": 1, "error": "e"}],
            "heartbeat": {things.job_id: {"lease_token": 1}},
            "enqueue": [
                {"queue": "mine", "depends_on": [things.job_id]},
                {"queue": "mine", "batch_id": things.batch_id},
            ],
        }
        answer = house.frame(strangers["admin of beta"].key, frame)
        return _without_new_ids(things.hidden_in(msgspec.json.encode(answer).decode()))

    assert ask(acme) == ask(acme.absent())
    assert house.changes_of("acme") == before


def test_the_owner_is_answered(house: KeyedHouse, acme: Things) -> None:
    """The ids are good: what strangers get is not the answer to a typing mistake."""
    owner = house.make("admin", "acme")

    assert house.tell("GET", f"/jobs/{acme.job_id}", owner.key).json["queue"] == QUEUE
    assert house.tell("GET", f"/batches/{acme.batch_id}", owner.key).status == 200
    assert house.tell("GET", f"/schedules/{acme.schedule_id}", owner.key).json["name"] == "nightly"
    assert house.tell("GET", f"/auth/keys/{acme.key_hash}/roles", owner.key).status == 200
    assert house.tell("GET", f"/queues/{QUEUE}", owner.key).status == 200
    assert house.tell("POST", f"/jobs/{acme.absent().job_id}/cancel", owner.key).code == "JOB_NOT_FOUND"
