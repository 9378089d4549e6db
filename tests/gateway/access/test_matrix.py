"""Who may do what, on every path: each endpoint, page and part of a frame, asked by each kind of caller.

The table is made from the endpoints: their permission, and the rules of the roles as they are documented, written down
here a second time. A new endpoint is in it at once; a new permission of a role is an answer that this table refuses.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from corvo.endpoint import Endpoint, Operation
from corvo.model.access import OPEN, OWN
from corvo.ops.audit.append_audit import AppendAudit
from gateway.access.confinement import OF_QUEUES
from gateway.app import ENDPOINTS
from gateway.examples import PATHS, QUERIES
from gateway.routes import API
from tests.gateway.access.keyed_house import PASSWORD, Actor, KeyedHouse, Told
from tests.gateway.search.conftest import Written
from tests.support.read_dbs import FilePlace

CUSTOM = "inspector"
CUSTOM_PERMISSIONS = [
    {"resource": "queues", "actions": ["read"]},
    {"resource": "jobs", "actions": ["read", "cancel"]},
    {"resource": "metrics", "actions": ["*"]},
    {"resource": "cluster", "actions": ["*"]},
]
_WORK = ("enqueue", "fetch", "ack", "fail", "heartbeat", "read")
_OPERATED = ("jobs", "bulk", "batches", "schedules", "queues", "cluster", "admin", "payloads")


def gives(role: str, access: str) -> bool:
    """What the guide says of each role."""
    resource, _, action = access.partition(":")
    is_read = action in ("read", "list")
    if role == "admin":
        return True
    if role == "operator":
        return is_read or resource in _OPERATED
    if role == "worker":
        works = resource == "jobs" and action in _WORK
        return works or (resource == "batches" and action in ("read", "write")) or access in ("docs:read",)
    if role == "readonly":
        return is_read
    assert role == CUSTOM
    return access in ("queues:read", "jobs:read", "jobs:cancel") or access.startswith(("metrics:", "cluster:"))


def is_of_the_installation(access: str) -> bool:
    """What no tenant and no key with a scope gets, whatever its role."""
    resource, _, action = access.partition(":")
    return resource in ("cluster", "admin", "sso") or (resource in ("roles", "namespaces") and action != "read")


def expected(actor: Actor, access: str) -> int:
    """200 stands for every answer that is no refusal of access."""
    if access == OPEN:
        return 200
    if not actor.role:
        return 401
    if access == OWN:
        return 200
    if actor.is_confined and is_of_the_installation(access):
        return 403
    return 200 if gives(actor.role, access) else 403


class Question(NamedTuple):
    method: str
    path: str
    access: str
    body: Any
    endpoint: Endpoint | None = None


UNWELL = ("READ_DB_UNAVAILABLE", "UNHEALTHY")  # no mirror runs here
ID_OF_NOTHING = {**PATHS, "namespace": "nowhere", "role": "nobody"}
PAGES = {
    "/": OPEN,
    "/healthz": OPEN,
    "/livez": OPEN,
    "/readyz": OPEN,
    "/metrics": "metrics:read",
    "/api/v1/metrics": "metrics:read",
    "/docs": "docs:read",
    "/openapi.json": "docs:read",
    "/llms.txt": "docs:read",
    "/ui": OPEN,  # the console's files hold no data
    "/ui/{path:path}": OPEN,
}
PARTS = {
    "enqueue": ([{"queue": "mail.in"}], "enqueued", "jobs:enqueue"),
    "ack": ([{"job_id": PATHS["job_id"], "lease_token": 1}], "acked", "jobs:ack"),
    "fail": ([{"job_id": PATHS["job_id"], "lease_token": 1, "error": "e"}], "failed", "jobs:fail"),
    "heartbeat": ({PATHS["job_id"]: {"lease_token": 1}}, "heartbeat", "jobs:heartbeat"),
}


def question(endpoint: Endpoint) -> Question:
    path = endpoint.path.format(**ID_OF_NOTHING)
    query = QUERIES.get(endpoint.name, "")
    body = endpoint.example if endpoint.body is not None else None
    if endpoint.name in ("fetch", "fetch_batch"):
        body = {**(body or {}), "timeout": 0}
    if endpoint.name == "set_sso_settings":
        body = {}  # the records keep what they have
    if endpoint.name == "login":
        body = {"password": PASSWORD}
    if endpoint.name == "rebuild_sqlite":
        query = "wait=false"
    return Question(endpoint.method, API + path + (f"?{query}" if query else ""), endpoint.access, body, endpoint)


QUESTIONS = [question(endpoint) for endpoint in ENDPOINTS]
ROLES = ("admin", "operator", "worker", "readonly", CUSTOM)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedHouse]:
    written = Written(FilePlace(tmp_path_factory.mktemp("matrix")))
    written.put_cursor(index=100)
    with KeyedHouse(written.path, 4, "acme") as house:
        made = house.make_role(CUSTOM, CUSTOM_PERMISSIONS)
        assert made.status == 200, made
        yield house
    written.close()


@pytest.fixture(scope="module")
def actors(house: KeyedHouse) -> dict[str, Actor]:
    kinds = [(role, namespace, scope) for role in ROLES for namespace in ("default", "acme") for scope in ("", "*")]
    made = [house.make(*kind) for kind in kinds]
    return {actor.title: actor for actor in (Actor(), Actor(key="sk_nobody-knows-this-key"), *made)}


def _may_be_refused_further(actor: Actor, asked: Question, told: Told) -> bool:
    """Beyond the permission: giving away what one has not, and what is about more than the queues of a scope."""
    if asked.endpoint is None:
        return actor.is_confined and asked.path.endswith("/metrics")
    if "payloads:see" in told.error:  # to search in documents is to see them
        return asked.endpoint.name == "fulltext" and actor.role not in ("admin", "operator", "worker")
    is_grant = "FORBIDDEN" in asked.endpoint.refusals and "permission" not in told.error
    return is_grant or (actor.scope != "" and asked.endpoint.access.partition(":")[0] not in OF_QUEUES)


def check(house: KeyedHouse, actor: Actor, asked: Question) -> str:
    """What is wrong with the answer; empty if it is the table's."""
    house.shards.asked.clear()
    told = house.visit(asked.method, asked.path, actor.key, asked.body)
    want = expected(actor, asked.access)
    where = f"{actor.title}: {asked.method} {asked.path} ({asked.access})"
    is_unbuilt = asked.path.startswith("/ui") and told.status == 503  # the console's files, without npm
    if told.status >= 500 and told.code not in UNWELL and not is_unbuilt:
        return f"{where} is answered with {told}"
    if want == 200:
        is_refused = told.status == 401 or (told.status == 403 and not _may_be_refused_further(actor, asked, told))
        return f"{where} is refused: {told.error}" if is_refused else ""
    changes = [ask for _, ask in house.shards.asked if isinstance(ask, Operation) and not isinstance(ask, AppendAudit)]
    if changes:
        return f"{where} is refused, and changed something: {changes}"
    return "" if told.status == want else f"{where} gets {told.status} instead of {want}: {told.content!r}"


TITLES = ["nobody", "an unknown key"] + [
    Actor(role, namespace, scope).title for role in ROLES for namespace in ("default", "acme") for scope in ("", "*")
]


@pytest.mark.parametrize("title", TITLES)
def test_every_endpoint_and_page_answers_as_the_table_says(
    title: str, house: KeyedHouse, actors: dict[str, Actor]
) -> None:
    actor = actors[title]
    pages = [Question("GET", path.replace("{path:path}", "x"), access, None) for path, access in PAGES.items()]

    faults = [fault for asked in (*QUESTIONS, *pages) if (fault := check(house, actor, asked))]

    assert faults == [], "\n".join(faults)


@pytest.mark.parametrize("title", TITLES)
def test_every_part_of_a_frame_answers_as_the_table_says(
    title: str, house: KeyedHouse, actors: dict[str, Actor]
) -> None:
    actor = actors[title]
    fetch = {"queues": ["mail.none"], "worker_id": "w"}

    answer = house.frame(actor.key, {"id": 1, **{part: body for part, (body, _, _) in PARTS.items()}, "fetch": fetch})

    if not actor.role:
        assert answer is None, "a stream without a credential was opened"
        return
    for body, result, access in PARTS.values():
        given = list(answer[result].values() if isinstance(body, dict) else answer[result])
        codes = {item.get("code", "") for item in given}
        assert ("FORBIDDEN" in codes) == (expected(actor, access) == 403), (result, given)
    assert (answer.get("code") == "FORBIDDEN") == (expected(actor, "jobs:fetch") == 403)


def test_the_table_would_see_a_permission_too_many(house: KeyedHouse, actors: dict[str, Actor]) -> None:
    """A check that cannot fail proves nothing: the answers of an admin are not those of the table for a reader."""
    posing = actors["readonly of default"]._replace(key=actors["admin of default"].key)

    faults = [fault for asked in QUESTIONS if (fault := check(house, posing, asked))]

    writes = [endpoint for endpoint in ENDPOINTS if expected(posing, endpoint.access) == 403]
    assert len(faults) == len(writes) > 40


def test_every_page_is_in_the_table(house: KeyedHouse) -> None:
    served = {route.path for route in house.app._pages.routes}  # type: ignore[attr-defined]

    assert served == PAGES.keys()
