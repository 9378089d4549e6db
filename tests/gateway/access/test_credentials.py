"""Credentials at the door: which ones count, what those that do not are told, and what a key cannot claim."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corvo.endpoint import Operation
from corvo.model.errors import Refusal
from corvo.model.timestamps import to_rfc3339
from corvo.ops.access.touch_keys import TouchKeys
from gateway.access.failures import FailedCredentials
from tests.gateway.access.keyed_house import PASSWORD, Actor, KeyedHouse
from tests.support.builders import NOW, SECOND

HERE = (b"host", b"corvo.example")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("credentials") / "none.db"


@pytest.fixture(scope="module")
def house(place: Path) -> Iterator[KeyedHouse]:
    with KeyedHouse(place, 4, "acme", "beta") as house:
        yield house


@pytest.fixture(scope="module")
def admin(house: KeyedHouse) -> Actor:
    return house.make("admin")


@pytest.fixture(scope="module")
def acme(house: KeyedHouse) -> Actor:
    return house.make("admin", "acme")


@pytest.fixture(autouse=True)
def forgiving(house: KeyedHouse) -> None:
    """Wrong credentials of one test are no guesses in the next."""
    house.guard.failures = FailedCredentials()


def changes(house: KeyedHouse) -> list[Operation]:
    return [ask for _, ask in house.shards.asked if isinstance(ask, Operation) and not isinstance(ask, TouchKeys)]


def test_s23_a_stream_by_cookie_needs_a_page_of_ours(house: KeyedHouse, admin: Actor) -> None:
    cookie = (b"cookie", b"corvo_api_key=" + admin.key.encode())
    own, foreign = (b"origin", b"http://corvo.example"), (b"origin", b"https://evil.example")

    assert house.frame("", {"id": 1}, HERE, cookie, own) == {"id": 1}
    assert house.frame("", {"id": 1}, HERE, cookie, foreign) is None
    assert house.frame("", {"id": 1}, HERE, cookie) is None


def test_s32_whatever_is_wrong_with_a_key_the_answer_is_the_same(house: KeyedHouse) -> None:
    disabled = house.make("admin", enabled=False)
    expired = house.make("admin", name="expired", expires_at=to_rfc3339(NOW + SECOND))
    house.guard._clock_ns = lambda: NOW + 2 * SECOND
    try:
        told = {
            name: house.tell("GET", "/auth/whoami", key, None, *headers)
            for name, key, headers in [
                ("none", "", ()),
                ("empty", "", ((b"x-api-key", b""),)),
                ("random", "sk_" + "a" * 49, ()),
                ("disabled", disabled.key, ()),
                ("expired", expired.key, ()),
                ("two of them", PASSWORD, ((b"x-api-key", b"b"),)),
                ("not ASCII", "", ((b"x-api-key", b"\xff"),)),
                ("a bearer that is none", "", ((b"authorization", b"Bearer nothing"),)),
            ]
        }
    finally:
        house.guard._clock_ns = lambda: NOW

    assert {(each.status, each.content) for each in told.values()} == {(401, told["none"].content)}, told


def test_s33_records_that_cannot_be_read_let_nobody_in(place: Path) -> None:
    with KeyedHouse(place, 4) as house:
        good = house.make("worker")
        house.shards.refusing[0] = Refusal("NOT_LEADER", "no leader")
        house.registry._confirmed_at = None  # longer ago than a copy may be old

        told = [house.tell("GET", "/auth/whoami", key) for key in (good.key, "sk_unknown", "")]

        assert {each.status for each in told} <= {401, 503}
        assert told[0].code == "ACCESS_UNAVAILABLE"


def test_s34_a_key_in_the_address_is_not_looked_at(house: KeyedHouse, admin: Actor) -> None:
    for name in ("api_key", "key", "X-API-Key", "access_token"):
        assert house.tell("GET", f"/auth/whoami?{name}={admin.key}", "").status == 401


def test_s36_of_a_key_only_its_hash_is_stored(house: KeyedHouse, admin: Actor) -> None:
    stored = b"".join(key + value for machine in house.shards.machines for key, value in machine.records().items())
    secret = admin.key.encode()

    assert secret not in stored and secret[11:] not in stored
    listed = house.tell("GET", "/auth/keys", admin.key).content
    assert secret not in listed and secret[:11] in listed


def test_s37_guesses_are_slowed_down_and_good_keys_are_not(house: KeyedHouse, admin: Actor) -> None:
    codes = [house.tell("GET", "/auth/whoami", f"sk_guess-number-{number}").code for number in range(40)]

    assert codes[0] == "UNAUTHORIZED" and codes[-1] == "RATE_LIMITED"
    assert house.tell("GET", "/auth/whoami", admin.key).status == 200


def test_s40_a_scope_holds_in_bodies_paths_chains_batches_and_frames(house: KeyedHouse) -> None:
    mailer = house.make("admin", "default", "mail.*")
    outside: list[tuple[str, str, Any]] = [
        ("POST", "/enqueue", {"queue": "pay"}),
        ("POST", "/enqueue/batch", {"jobs": [{"queue": "mail.a"}, {"queue": "pay"}]}),
        ("POST", "/enqueue", {"queue": "mail.a", "chain": {"steps": [{"queue": "mail.a"}, {"queue": "pay"}]}}),
        ("POST", "/enqueue/batch", {"jobs": [{"queue": "mail.a"}], "batch": {"callback_queue": "pay"}}),
        ("POST", "/fetch", {"queues": ["mail.a", "pay"], "worker_id": "w", "timeout": 0}),
        ("GET", "/queues/pay", None),
        ("POST", "/queues/pay/pause", None),
        ("POST", "/batch", {"on_complete": {"queue": "pay"}}),
        ("POST", "/schedules", {"name": "n", "queue": "pay", "cron": "0 6 * * *"}),
    ]
    house.shards.asked.clear()

    told = [(house.tell(method, path, mailer.key, body), path) for method, path, body in outside]
    frame = house.frame(mailer.key, {"id": 1, "enqueue": [{"queue": "pay"}, {"queue": "mail.a"}]})

    assert {(each.status, path) for each, path in told} == {(403, path) for _, path, _ in outside}
    assert [item.get("code", "") for item in frame["enqueued"]] == ["FORBIDDEN", ""]
    assert len(changes(house)) == 1, "only the job inside the scope"


def test_s42_a_tenant_cannot_claim_another_namespace(house: KeyedHouse, acme: Actor) -> None:
    before = house.changes_of("beta")
    claims = [(b"x-corvo-namespace", name) for name in (b"beta", b"default", b"*", b"nowhere", b"BETA", b"")]

    told = [house.tell("POST", "/enqueue", acme.key, {"queue": "q"}, claim) for claim in claims]
    in_body = house.tell("POST", "/enqueue", acme.key, {"queue": "q", "namespace": "beta"})

    assert {each.status for each in told} == {403}
    assert in_body.code == "VALIDATION_ERROR"
    assert house.changes_of("beta") == before
    chosen = house.tell("POST", "/enqueue", PASSWORD, {"queue": "q"}, (b"x-corvo-namespace", b"beta"))
    assert chosen.status == 201 and chosen.json["job_id"].endswith("_beta")


@pytest.mark.parametrize("name", ["beta|q", "beta\0q", "|q", "beta%7Cq", "a\nb", "..", " q", "q ", ""])
def test_s43_no_name_reaches_into_another_namespace(name: str, house: KeyedHouse, acme: Actor) -> None:
    before = house.changes_of("beta")

    told = house.tell("POST", "/enqueue", acme.key, {"queue": name})
    fetched = house.tell("POST", "/fetch", acme.key, {"queues": [name], "worker_id": "w", "timeout": 0})

    assert (told.code, fetched.code) == ("VALIDATION_ERROR", "VALIDATION_ERROR")
    assert house.changes_of("beta") == before


def test_s43_the_separator_of_other_servers_is_none_here(house: KeyedHouse, acme: Actor) -> None:
    before = house.changes_of("beta")

    told = house.tell("POST", "/enqueue", acme.key, {"queue": "beta::q"})

    assert told.status == 201 and told.json["job_id"].endswith("_acme")
    assert house.changes_of("beta") == before


@pytest.mark.parametrize(
    "field", ["id", "state", "attempt", "tenant", "namespace", "created_at", "lease_token", "_queue"]
)
def test_s44_what_the_server_decides_cannot_be_assigned(field: str, house: KeyedHouse, admin: Actor) -> None:
    told = house.tell("POST", "/enqueue", admin.key, {"queue": "q", field: 1})

    assert (told.code, told.json["field"]) == ("VALIDATION_ERROR", field)


def test_s54_the_scope_is_compared_with_the_value_that_is_used(house: KeyedHouse) -> None:
    """Of two values for one key the last counts, for every check as for the job."""
    mailer = house.make("worker", "default", "mail.*")

    outside = house.tell("POST", "/enqueue", mailer.key, b'{"queue":"mail.a","queue":"pay"}')
    inside = house.tell("POST", "/enqueue", mailer.key, b'{"queue":"pay","queue":"mail.a"}')

    assert (outside.status, inside.status) == (403, 201)
    assert house.tell("GET", f"/jobs/{inside.json['job_id']}", PASSWORD).json["queue"] == "mail.a"


def test_s49_a_cookie_has_its_flags_and_counts_for_changes_from_our_pages_only(house: KeyedHouse, admin: Actor) -> None:
    told = house.tell("POST", "/auth/login", "", {"key": admin.key}, HERE)
    cookie = told.headers["set-cookie"]
    sent = (b"cookie", cookie.partition(";")[0].encode())
    own, foreign = (b"origin", b"http://corvo.example"), (b"origin", b"https://evil.example")

    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert house.tell("GET", "/auth/whoami", "", None, HERE, sent).status == 200
    assert house.tell("POST", "/enqueue", "", {"queue": "q"}, HERE, sent, own).status == 201
    for headers in ((foreign,), (), ((b"sec-fetch-site", b"cross-site"),)):
        assert house.tell("POST", "/enqueue", "", {"queue": "q"}, HERE, sent, *headers).status == 403
    form = (b"content-type", b"text/plain")
    assert house.tell("POST", "/queues/q/pause", "", None, HERE, sent, own, form).status == 403


def test_s50_a_revoked_key_is_refused_by_the_gateway_that_revoked_it_at_once(house: KeyedHouse, admin: Actor) -> None:
    made = house.tell("POST", "/auth/keys", admin.key, {"name": "short", "role": "worker"}).json
    assert house.tell("GET", "/auth/whoami", made["api_key"]).status == 200

    house.tell("DELETE", f"/auth/keys/{made['key_hash']}", admin.key)

    assert house.tell("GET", "/auth/whoami", made["api_key"]).status == 401


def test_s91_pages_tell_strangers_nothing(house: KeyedHouse) -> None:
    for path in ("/metrics", "/docs", "/openapi.json", "/api/v1/cluster/status"):
        assert house.visit("GET", path, "").status == 401
    for path in ("/debug", "/debug/pprof/", "/supervisor", "/RPC2", "/.env", "/server-status"):
        assert house.visit("GET", path, PASSWORD).status == 404
    shown = house.visit("GET", "/healthz", "").content
    assert b"node-1" not in shown and b"raft" not in shown


def test_s35_a_wrong_key_takes_no_time_that_depends_on_its_bytes(house: KeyedHouse, admin: Actor) -> None:
    """Not a measurement: keys are found by their SHA-256, and no comparison sees the bytes that were sent."""
    assert set(house.guard._known) and all(len(digest) == 32 for digest, _ in house.guard._known)
    assert all(len(key_hash) == 64 for key_hash in house.registry.state.keys)
