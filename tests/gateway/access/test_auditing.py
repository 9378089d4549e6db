"""Each change is announced, made and reported. Denied requests and reads of payloads are recorded, secrets never."""

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from corvo.endpoint import Answer, Operation, Query
from corvo.model import audit
from corvo.model.access import Permission, Principal
from corvo.model.errors import Refusal
from corvo.ops.audit.append_audit import AppendAudit
from gateway.access.audit_writer import KEPT_MAX
from gateway.access.audited import HIDDEN, HIDDEN_CHANGED, is_change
from gateway.app import ENDPOINTS
from gateway.http.messages import Disconnected
from gateway.shards.client import ShardCall
from tests.gateway.access.audit_house import ADA, WORKER, AuditedHouse
from tests.gateway.asgi import a_scope, call, parts

SECRET = "hunter2"


@pytest.fixture
def house() -> Iterator[AuditedHouse]:
    with AuditedHouse() as made:
        yield made


def changes(house: AuditedHouse) -> list[Operation | Query]:
    """What reached shards, apart from records and reads."""
    return [ask for _, ask in house.shards.asked if isinstance(ask, Operation) and not isinstance(ask, AppendAudit)]


# A change


def test_a_change_of_settings_is_recorded_with_before_and_after(house: AuditedHouse) -> None:
    house.be(ADA)
    assert house.send("POST", "/queues/mail/concurrency", {"max": 5}, x_request_id="r-1").status == 200
    house.send("POST", "/queues/mail/concurrency", {"max": 7})

    first, done, second, done_again = house.records()
    assert (first.principal, first.principal_kind, first.role, first.namespace) == (
        "ada@example.org",
        "person",
        "admin",
        "default",
    )
    assert (first.address, first.request_id, first.method, first.route) == (
        "192.0.2.7",
        "r-1",
        "POST",
        "set_concurrency",
    )
    assert (first.path, first.target, first.change) == (
        "/api/v1/queues/mail/concurrency",
        {"queue": "mail"},
        {"max": 5},
    )
    assert first.before is None, "the queue did not exist"
    assert isinstance(done.after, dict) and isinstance(second.before, dict) and isinstance(done_again.after, dict)
    assert [one["max_concurrency"] for one in (done.after, second.before, done_again.after)] == [5, 5, 7]
    assert (done.status, done.code, done.intent) == (200, "", 1)
    assert done.duration_ms >= 0


def test_the_intent_is_stored_before_the_change_and_the_outcome_after_it(house: AuditedHouse) -> None:
    house.send("POST", "/queues/mail/pause")

    order = [type(ask).__name__ for _, ask in house.shards.asked]
    assert order == ["GetQueue", "AppendAudit", "PauseQueue", "GetQueue", "AppendAudit"]


def test_a_refused_change_is_recorded_with_its_code(house: AuditedHouse) -> None:
    job = "s00_job_" + "0" * 26
    assert house.send("POST", f"/jobs/{job}/cancel", {"grace": "5s"}).status == 404

    intent, outcome = house.pair()
    assert (intent.target, intent.change) == ({"job_id": job}, {"grace": "5s"})
    assert (outcome.status, outcome.code) == (404, "JOB_NOT_FOUND")


def test_what_a_request_made_is_named(house: AuditedHouse) -> None:
    made = house.send("POST", "/schedules", {"name": "nightly", "queue": "mail", "cron": "@daily"}).json["id"]

    assert house.pair()[1].made == {"id": made}


@pytest.mark.parametrize(
    ("method", "path", "body", "route"),
    [
        ("POST", "/queues/mail/pause", None, "pause_queue"),
        ("POST", "/queues/mail/resume", None, "resume_queue"),
        ("POST", "/queues/mail/drain", None, "drain_queue"),
        ("POST", "/queues/mail/throttle", {"rate": 5, "window_ms": 1000}, "set_throttle"),
        ("DELETE", "/queues/mail/throttle", None, "remove_throttle"),
        ("POST", "/queues/mail/retention", {"dead": "forever"}, "set_retention"),
        ("POST", "/queues/mail/clear", None, "clear_queue"),
        ("DELETE", "/queues/mail?confirm=true", None, "delete_queue"),
        ("POST", "/batch", {"description": "album"}, "create_batch"),
        ("POST", "/cluster/transfer", {"node_id": "node-1"}, "cluster_transfer"),
    ],
)
def test_every_kind_of_change_is_recorded(house: AuditedHouse, method: str, path: str, body: Any, route: str) -> None:
    house.enqueue()
    house.send(method, path, body)

    intent, outcome = house.pair()
    assert (intent.route, intent.method) == (route, method)
    assert outcome.status in (200, 201, 202, 409)


def test_every_endpoint_that_changes_something_is_covered_and_work_is_not(house: AuditedHouse) -> None:
    unaudited = {endpoint.name for endpoint in ENDPOINTS if endpoint.method != "GET" and not is_change(endpoint)}

    assert unaudited == {
        *("enqueue", "enqueue_batch", "fetch", "fetch_batch", "heartbeat"),
        *("ack", "ack_batch", "fail", "fail_batch", "search", "bulk_get"),
        *("login", "logout"),  # they change a cookie, no record
    }
    assert house.auditing.names == {endpoint.name for endpoint in ENDPOINTS if is_change(endpoint)}


def test_producers_workers_and_readers_leave_no_trace(house: AuditedHouse) -> None:
    job = house.enqueue()
    house.fetch()
    house.post(f"/ack/{job}", {})
    house.get(f"/jobs/{job}")
    house.get("/queues/mail")

    assert house.records() == []


def test_a_query_is_recorded_by_its_listed_fields(house: AuditedHouse) -> None:
    house.enqueue()
    house.send("DELETE", "/queues/mail?confirm=true&force=true")

    intent, outcome = house.pair()
    assert intent.query == outcome.query == "confirm=True&force=True"


# Namespaces


def test_a_tenant_s_names_are_recorded_as_it_knows_them(house: AuditedHouse) -> None:
    house.be(msgspec.structs.replace(ADA, namespace="acme", home="acme"))
    house.send("POST", "/queues/mail/pause")
    house.send("POST", "/schedules", {"name": "nightly", "queue": "mail", "cron": "@daily"})

    pause, _, create, created = house.records()
    assert {record.namespace for record in house.records()} == {"acme"}
    assert pause.target == {"queue": "mail"}
    assert create.change == {"name": "nightly", "queue": "mail", "cron": "@daily"}
    assert isinstance(created.after, dict)
    assert (created.after["name"], created.after["queue"]) == ("nightly", "mail")


# Secrets


def test_payloads_are_never_recorded_and_still_seen_to_change(house: AuditedHouse) -> None:
    terms = {"name": "nightly", "queue": "mail", "cron": "@daily"}
    house.send("POST", "/schedules", {**terms, "payload": {"password": SECRET}, "tags": {"t": SECRET}})
    house.send("PUT", "/schedules/nightly", {"payload": {"password": SECRET * 2}})
    house.send("PUT", "/schedules/nightly", {"cron": "@hourly"})
    house.send("POST", "/batch", {"callback_queue": "done", "callback_payload": {"p": SECRET}})
    house.send("POST", "/batch", {"on_complete": {"queue": "done", "payload": {"p": SECRET}}})
    house.send("DELETE", "/schedules/nightly")

    created, _, _, replaced, _, moved, batch, _, other, _, deleted, gone = house.records()
    assert created.change["payload"] == created.change["tags"] == HIDDEN
    assert isinstance(replaced.after, dict) and isinstance(moved.after, dict) and isinstance(deleted.before, dict)
    assert replaced.after["payload"] == HIDDEN_CHANGED
    assert (replaced.after["tags"], moved.after["payload"]) == (HIDDEN, HIDDEN)
    assert (moved.after["cron"], deleted.before["cron"], gone.after) == ("@hourly", "@hourly", None)
    assert batch.change == {"callback_queue": "done", "callback_payload": HIDDEN}
    assert other.change == {"on_complete": {"queue": "done", "payload": HIDDEN}}
    assert not is_anywhere(house, SECRET)


def test_a_credential_in_a_header_or_in_the_query_is_not_recorded(house: AuditedHouse) -> None:
    house.send("POST", f"/queues/mail/pause?api_key={SECRET}", x_api_key=SECRET, authorization=f"Bearer {SECRET}")
    house.guard.refusal = Refusal("FORBIDDEN", SECRET)
    house.send("POST", f"/queues/mail/pause?api_key={SECRET}", x_api_key=SECRET)
    settle(house)

    assert not is_anywhere(house, SECRET)


def is_anywhere(house: AuditedHouse, text: str) -> bool:
    """In any byte of the log's shard."""
    records = house.shards.machines[audit.SHARD].records()
    return any(text.encode() in value for key, value in records.items() if key.startswith(b"au|"))


# Access itself


def test_keys_are_recorded_by_their_terms_and_never_by_themselves(house: AuditedHouse) -> None:
    made = house.send("POST", "/auth/keys", {"name": "mailer", "role": "worker"}).json
    given = "sk_" + SECRET + "x" * 40
    house.send("POST", "/auth/keys", {"name": "given", "key": given})
    house.send("POST", "/auth/keys", {"name": "given again", "key": given, "role": "operator"})
    house.send("PUT", f"/auth/keys/{made['key_hash']}", {"enabled": False})
    rotated = house.send("POST", f"/auth/keys/{made['key_hash']}/rotate", {"overlap": "1h"})
    house.send("DELETE", "/auth/keys", {"key_hash": made["key_hash"]})

    records = house.records()
    outcomes = [record for record in records if record.kind == "outcome"]
    assert {outcome.status for outcome in outcomes} <= {200, 409}
    create, created, second, _, third, changed, update, updated, *_, delete, deleted = records
    assert create.change == {"name": "mailer", "role": "worker"}
    assert (create.before, created.made) == (None, {"key_hash": made["key_hash"]})
    assert terms(created.after, "name", "role", "enabled") == ("mailer", "worker", True)
    assert second.change == {"name": "given", "key": HIDDEN}
    assert terms(third.before, "name", "role") == ("given", "readonly")
    assert terms(changed.after, "name", "role") == ("given again", "operator")
    assert terms(update.before, "enabled") + terms(updated.after, "enabled") == (True, False)
    assert (terms(delete.before, "name"), deleted.after) == (("mailer",), None)
    for secret in (made["api_key"], given, rotated.json.get("api_key", "nothing")):
        assert not is_anywhere(house, secret)


def test_roles_namespaces_and_sign_on_are_recorded_before_and_after(house: AuditedHouse) -> None:
    permissions = [{"resource": "jobs", "actions": ["read"]}]
    house.send("POST", "/auth/roles", {"name": "looker", "permissions": permissions})
    house.send("DELETE", "/auth/roles/looker")
    house.send("POST", "/namespaces", {"name": "acme"})
    house.send("PUT", "/namespaces/acme/rate-limit", {"read_rps": 10, "read_burst": 20})
    house.send("PUT", "/namespaces/acme/quotas", {"max_jobs": 5})
    house.send(
        "POST",
        "/settings/sso",
        {"provider": "oidc", "oidc_issuer_url": "https://id.example.org", "oidc_client_id": "corvo"},
    )
    house.send("DELETE", "/namespaces/acme")

    records = house.records()
    assert [record.status for record in records if record.kind == "outcome"] == [200, 200, 201, 200, 200, 200, 200]
    pairs = [(one.before, other.after) for one, other in zip(records[::2], records[1::2], strict=True)]
    role, no_role, space, limits, quotas, sso, no_space = pairs
    assert role == (None, {"name": "looker", "permissions": permissions}) == no_role[::-1]
    assert (space[0], terms(space[1], "name", "state")) == (None, ("acme", "active"))
    assert terms(limits[0], "using_defaults") + terms(limits[1], "using_defaults", "read_rps") == (True, False, 10.0)
    assert terms(quotas[0], "max_jobs") + terms(quotas[1], "max_jobs") == (0, 5)
    assert terms(sso[0], "provider") + terms(sso[1], "provider", "oidc_client_id") == ("", "oidc", "corvo")
    assert terms(no_space[0], "name", "state") == ("acme", "active")


def terms(settings: Any, *names: str) -> tuple[Any, ...]:
    return tuple(settings[name] for name in names)


# Where the log cannot be written


def test_without_its_intent_nothing_is_done(house: AuditedHouse) -> None:
    house.shards.refusing[audit.SHARD] = Refusal("NOT_LEADER", "no leader")
    reply = house.send("POST", "/queues/other/pause")  # a queue of another shard

    assert (reply.status, reply.code) == (503, "AUDIT_UNAVAILABLE")
    assert "retry-after" in reply.headers
    assert changes(house) == []


def test_an_attempt_that_could_not_be_announced_is_recorded_later_as_refused(house: AuditedHouse) -> None:
    house.shards.refusing[audit.SHARD] = Refusal("NOT_LEADER", "no leader")
    house.send("POST", "/queues/other/pause")
    del house.shards.refusing[audit.SHARD]
    settle(house)

    intent, outcome = house.pair()
    assert (intent.route, outcome.status, outcome.code) == ("pause_queue", 503, "AUDIT_UNAVAILABLE")


def test_an_intent_that_was_stored_although_its_answer_was_lost_is_not_stored_twice(house: AuditedHouse) -> None:
    real, lost = house.shards.ask, []

    def ask(shard: int, ask: Any, wait_ms: int = 0, timeout_s: float | None = None) -> ShardCall:
        made = real(shard, ask, wait_ms, timeout_s)
        if isinstance(ask, AppendAudit) and not lost:
            lost.append(ask)
            made.future = asyncio.get_running_loop().create_future()
            made.future.set_exception(Refusal("OUTCOME_UNKNOWN", "lost"))
        return made

    house.shards.ask = ask  # type: ignore[method-assign]
    assert house.send("POST", "/queues/mail/pause").code == "AUDIT_UNAVAILABLE"
    settle(house)

    assert (house.pair()[1].code, changes(house)) == ("AUDIT_UNAVAILABLE", [])


def test_an_outcome_that_cannot_be_written_is_kept_and_the_client_has_its_answer(house: AuditedHouse) -> None:
    after_change(house, lambda: house.shards.refusing.update({audit.SHARD: Refusal("NOT_LEADER", "no leader")}))
    assert house.send("POST", "/queues/mail/pause").status == 200
    assert [record.kind for record in house.records()] == ["intent"], "shown as unknown"
    assert len(house.writer) == 1

    del house.shards.refusing[audit.SHARD]
    settle(house)
    assert [record.kind for record in house.records()] == ["intent", "outcome"]


def after_change(house: AuditedHouse, do: Any) -> None:
    """Runs once, between the change and its outcome."""
    serve = house.app._answer

    async def served(*arguments: Any) -> Answer:
        try:
            return await serve(*arguments)
        finally:
            do()

    house.app._answer = served  # type: ignore[method-assign]


def test_what_is_kept_is_bounded(house: AuditedHouse) -> None:
    house.shards.refusing[audit.SHARD] = Refusal("NOT_LEADER", "no leader")

    async def many() -> None:
        for _ in range(KEPT_MAX + 5):
            house.writer.keep(house.writer.unwritten(house_record()))

    house.runner.run(many())
    assert len(house.writer) == KEPT_MAX


def house_record() -> Any:
    return audit.AuditRecord(kind="outcome", namespace="default", intent=1)


def settle(house: AuditedHouse) -> None:
    """Until nothing waits to be written."""

    async def wait() -> None:
        async with asyncio.timeout(5):
            while len(house.writer):
                await asyncio.sleep(0.001)

    house.runner.run(wait())


# Crashes: every step of the way


STEPS = ["before the intent", "after the intent", "after the change", "after the outcome"]


class Crash(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_any_step_leaves_no_change_without_an_intent(step: str) -> None:
    """A gateway dies; what it sent is at the shards or not. A second one finds the log as it is."""
    with AuditedHouse() as house:
        house.shards.ask = crashing(house, step)  # type: ignore[method-assign]
        with pytest.raises(Crash):
            house.send("POST", "/queues/mail/pause")
        queue = house.shards.machines[shard_of_mail(house)].tables.find_queue("mail")
        is_paused = queue is not None and queue.controls is not None and queue.controls.is_paused
        kinds = [record.kind for record in house.records()]

        assert (
            kinds
            == {
                "before the intent": [],
                "after the intent": ["intent"],
                "after the change": ["intent"],
                "after the outcome": ["intent", "outcome"],
            }[step]
        )
        assert is_paused == (step in ("after the change", "after the outcome"))
        assert not is_paused or kinds[0] == "intent"


def shard_of_mail(house: AuditedHouse) -> int:
    from corvo.model.sharding import shard_of_queue

    return shard_of_queue("mail", len(house.shards))


def crashing(house: AuditedHouse, step: str) -> Any:
    real, seen, crashed = house.shards.ask, [], []

    def ask(shard: int, ask: Any, wait_ms: int = 0, timeout_s: float | None = None) -> ShardCall:
        name = type(ask).__name__
        seen.append(name)
        if crashed:  # nothing that the dead process would still do arrives
            return ShardCall(ask, 0.0, 0.0, shard=shard, future=asyncio.get_running_loop().create_future())
        if step == "before the intent" and name == "AppendAudit":
            crashed.append(name)
            raise Crash
        made = real(shard, ask, wait_ms, timeout_s)
        is_last = {
            "after the intent": seen.count("AppendAudit") == 1 and name == "AppendAudit",
            "after the change": name == "PauseQueue",
            "after the outcome": seen.count("AppendAudit") == 2,
        }
        if is_last.get(step):
            crashed.append(name)
            raise Crash
        return made

    return ask


@pytest.mark.parametrize(
    ("raised", "status", "code"),
    [
        (Disconnected(), 499, ""),
        (asyncio.CancelledError(), 499, ""),
        (RuntimeError("a bug"), 500, "INTERNAL_ERROR"),
    ],
)
def test_a_request_that_ends_without_an_answer_is_reported(
    house: AuditedHouse, raised: BaseException, status: int, code: str
) -> None:
    async def fail(*arguments: Any) -> Answer:
        raise raised

    house.app._answer = fail  # type: ignore[method-assign]

    async def send() -> None:
        try:
            await call(house.app, a_scope("POST", "/api/v1/queues/mail/pause", []), parts(b""))
        except (AssertionError, asyncio.CancelledError):
            pass  # nothing was sent back

    house.runner.run(send())
    settle(house)

    outcome = house.pair()[1]
    assert (outcome.status, outcome.code) == (status, code)


# Denied


def test_a_forbidden_request_is_recorded_once_with_who_it_was(house: AuditedHouse) -> None:
    house.be(WORKER)
    assert house.send("POST", "/queues/mail/pause").status == 403
    settle(house)

    (denied,) = house.records()
    assert (denied.kind, denied.principal, denied.role, denied.key) == ("denied", "worker", "worker", "ab" * 6)
    assert (denied.status, denied.code, denied.path) == (403, "FORBIDDEN", "/api/v1/queues/mail/pause")
    assert changes(house) == []


def test_a_denied_read_is_recorded_too(house: AuditedHouse) -> None:
    house.be(WORKER)
    assert house.send("GET", "/queues").status == 403
    settle(house)

    assert [record.method for record in house.records()] == ["GET"]


def test_a_queue_outside_the_scope_is_a_denied_request(house: AuditedHouse) -> None:
    house.be(msgspec.structs.replace(ADA, queue_scope=("reports.*",), known={}))
    assert house.send("POST", "/queues/mail/pause").status == 403
    settle(house)

    assert [record.kind for record in house.records()] == ["denied"]


@pytest.mark.parametrize(("known_key", "records"), [("sk_abcd1234", 1), ("", 0)])
def test_a_request_without_a_valid_credential_is_recorded_where_its_key_is_known(known_key: str, records: int) -> None:
    with AuditedHouse(known_key=known_key) as house:
        house.guard.refusal = Refusal("UNAUTHORIZED", "expired")
        assert house.send("POST", "/queues/mail/pause").status == 401
        settle(house)

        assert [(one.kind, one.key, one.status) for one in house.records()] == [("denied", known_key, 401)] * records


def test_a_flood_of_denied_requests_is_counted_not_recorded(house: AuditedHouse) -> None:
    house.be(WORKER)
    for _ in range(40):
        assert house.send("POST", "/queues/mail/pause").status == 403
    settle(house)

    assert len(house.records()) < 10


def test_a_refusal_within_an_audited_change_is_an_outcome_and_no_denial(house: AuditedHouse) -> None:
    async def refuse(*arguments: Any) -> Answer:
        raise Refusal("FORBIDDEN", "not this one")

    house.app._answer = refuse  # type: ignore[method-assign]
    house.send("POST", "/queues/mail/pause")

    assert house.pair()[1].status == 403


# Reads of payloads


NOBODY_SEES = Principal(name="eve", kind="person", roles=("list",), permissions=(Permission("jobs", ("*",)),))


@pytest.mark.parametrize(
    ("principal", "is_recorded"),
    [
        (ADA, True),
        (msgspec.structs.replace(ADA, kind="password", known={}), True),
        (msgspec.structs.replace(ADA, kind="key", known={}), True),
        (WORKER, False),
        (NOBODY_SEES, False),
        (None, False),
    ],
    ids=["person", "password", "key", "worker", "no payloads", "anonymous"],
)
def test_reads_of_payloads_by_people_are_recorded_where_that_is_on(
    principal: Principal | None, is_recorded: bool
) -> None:
    with AuditedHouse(reads=True) as house:
        job = house.enqueue(payload={"password": SECRET})
        if principal is not None:
            house.be(principal)
        assert house.send("GET", f"/jobs/{job}").status == 200

        found = [(one.kind, one.route, one.target, one.status) for one in house.records()]
        assert found == ([("read", "get_job", {"job_id": job}, 200)] if is_recorded else [])
        assert not is_anywhere(house, SECRET)


def test_a_search_is_recorded_without_its_terms() -> None:
    with AuditedHouse(reads=True) as house:
        house.be(ADA)
        house.send("POST", "/jobs/search", {"queue": "mail", "payload_contains": SECRET, "limit": 7})

        (read,) = house.records()
        assert read.change == {"queue": "mail", "payload_contains": HIDDEN, "limit": 7}


def test_a_read_that_cannot_be_recorded_is_not_shown() -> None:
    with AuditedHouse(reads=True) as house:
        job = house.enqueue(queue="other")
        house.be(ADA)
        house.shards.refusing[audit.SHARD] = Refusal("NOT_LEADER", "no leader")
        reply = house.send("GET", f"/jobs/{job}")

        assert (reply.status, reply.code) == (503, "AUDIT_UNAVAILABLE")


def test_a_read_that_finds_nothing_is_not_recorded() -> None:
    with AuditedHouse(reads=True) as house:
        house.be(ADA)
        assert house.send("GET", "/jobs/s00_job_" + "0" * 26).status == 404

        assert house.records() == []
