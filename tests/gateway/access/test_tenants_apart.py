"""Three tenants share four shards, and each sees what it would see alone.

The reference is the same server with one tenant in it: whatever a tenant does, the answer among the others and the
answer alone must be the same, byte for byte, once ids have been given names in the order in which they appeared. So
nothing of another tenant can show: no job, no count, no lock of a unique key, no order, no time, no error. Now and then
a tenant uses an id of another one; alone, it uses an id that nothing has.

`HYPOTHESIS_PROFILE=search` looks longer. The mutants at the end show that a leak is caught.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from corvo.endpoint import PlanContext
from corvo.model import sharding
from corvo.model.access import Principal
from corvo.queries import events
from gateway import app
from gateway.access.guard import Policy
from gateway.access.sessions import AdminPassword
from gateway.api.composed import ComposedEndpoints
from gateway.api.events import EventListener
from tests.gateway.asgi import JSON, House, Reply, a_scope, call, parts

TENANTS = ("acme", "beta", "default")
QUEUES = ("mail", "mail.in", "letters")
PASSWORD = "the-password-of-the-tests"
ABSENT = {"job": "s00_job_1" + "0" * 25, "batch": "s00_batch_1" + "0" * 25, "sched": "s00_sched_1" + "0" * 25}
_NANOSECONDS = re.compile(r"\.0000000\d\dZ")  # a shard gives each job a moment of its own, and clocks stand still here
_ID = re.compile(r"(?:s\d\d_(job|batch|sched)|chn)_[0-9a-f]{26}(?:_[a-z]+)?")


class Installation(House):
    """A server with its events; the lists of read.db are not part of it."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(4, policy=policy)
        nothing: Any = None
        listener = EventListener(self.shards, self.draining)  # type: ignore[arg-type]
        composed = ComposedEndpoints(self.shards, nothing, nothing, _Nothing(), listener, _Nothing())  # type: ignore[arg-type]
        self.app._handlers["cluster_events"] = composed.by_name()["cluster_events"]

    def request(self, method: str, path: str, body: Any, key: str) -> Reply:
        path, _, query = path.partition("?")
        headers = [*([JSON] if body is not None else []), *([(b"x-api-key", key.encode())] if key else [])]
        scope = a_scope(method, "/api/v1" + path, headers, query_string=query.encode())
        content = b"" if body is None else msgspec.json.encode(body)
        return self.runner.run(call(self.app, scope, parts(content)))


class _Nothing:
    def __getattr__(self, name: str) -> None:
        return None


class Seat:
    """A tenant at one installation: its key, and names for the ids that it has seen."""

    def __init__(self, installation: Installation, key: str = "") -> None:
        self.installation = installation
        self._key = key
        self._names: dict[str, str] = {}
        self.ids: dict[str, list[str]] = {kind: [] for kind in (*ABSENT, "chain")}

    def ask(self, method: str, path: str, body: Any, foreign: str = "") -> tuple[int, Any]:
        reply = self.installation.request(method, path, body, self._key)
        text = reply.content.decode()
        if foreign:
            text = text.replace(foreign, "FOREIGN")
        text = _NANOSECONDS.sub("Z", text)
        return reply.status, _ID.sub(lambda found: self._named(found[0], found[1] or "chain"), text)

    def _named(self, text: str, kind: str) -> str:
        if text not in self._names:
            self.ids[kind].append(text)
            self._names[text] = f"{kind}-{len(self.ids[kind])}"
        return self._names[text]

    def events(self) -> Counter[str]:
        """Of all shards together: each shard has an order of its own, and queues live elsewhere with others around."""
        _, text = self.ask("GET", "/cluster/events?limit=1000", None)
        shown = (
            {name: value for name, value in event.items() if name not in ("id", "seq", "shard", "event_id")}
            for event in msgspec.json.decode(text)["events"]
        )
        return Counter(repr(sorted(event.items())) for event in shown)

    def close(self) -> None:
        self.installation.runner.close()


class Apart(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.shared = Installation(Policy("on", password=AdminPassword(PASSWORD)))
        self.among = [Seat(self.shared, self._key(name)) for name in TENANTS]
        self.alone = [Seat(Installation(Policy("off"))) for _ in TENANTS]

    def _key(self, namespace: str) -> str:
        if namespace != "default":
            assert self.shared.request("POST", "/namespaces", {"name": namespace}, PASSWORD).status == 201
        body = {"name": namespace, "role": "admin", "namespace": namespace}
        return str(self.shared.request("POST", "/auth/keys", body, PASSWORD).json["api_key"])

    def teardown(self) -> None:
        for seat in (self.among[0], *self.alone):
            seat.close()

    # One request at both places

    def both(
        self, who: int, method: str, path: str, body: Callable[[str], Any], kind: str = "", which: int = 0
    ) -> None:
        """`body` and `{id}` of the path get the id that both places know under the same name, or a foreign one."""
        among, alone = self.among[who], self.alone[who]
        theirs = self._foreign(who, kind, which) if kind and which < 0 else ""
        if theirs:
            pair = theirs, ABSENT[kind]
        elif kind:
            known = len(among.ids[kind])
            assert known == len(alone.ids[kind])
            pair = (among.ids[kind][which % known], alone.ids[kind][which % known]) if known else (ABSENT[kind],) * 2
        else:
            pair = "", ""
        foreign = pair if theirs or pair[0] == ABSENT.get(kind) else ("", "")
        told = [
            seat.ask(method, path.replace("{id}", id_), body(id_), hidden)
            for seat, id_, hidden in zip((among, alone), pair, foreign, strict=True)
        ]
        assert told[0] == told[1], f"{TENANTS[who]}: {method} {path} among others: {told[0]}, alone: {told[1]}"

    def _foreign(self, who: int, kind: str, which: int) -> str:
        others = [id_ for number, seat in enumerate(self.among) if number != who for id_ in seat.ids[kind]]
        return others[which % len(others)] if others else ""

    # What a tenant may do. A `which` below zero is a thing of another tenant

    @rule(
        who=st.integers(0, 2),
        queue=st.sampled_from(QUEUES),
        key=st.sampled_from(("", "", "k")),
        which=st.none() | st.integers(-9, 30),
    )
    def enqueue(self, who: int, queue: str, key: str, which: int | None) -> None:
        extra: dict[str, Any] = {"unique_key": key} if key else {}
        if which is None:
            self.both(who, "POST", "/enqueue", lambda _: {"queue": queue, "payload": {"of": who}, **extra})
        else:
            self.both(who, "POST", "/enqueue", lambda id_: {"queue": queue, "depends_on": [id_]}, "job", which)

    @rule(who=st.integers(0, 2), queue=st.sampled_from(QUEUES), count=st.integers(1, 3))
    def fetch(self, who: int, queue: str, count: int) -> None:
        body = {"queues": [queue], "worker_id": "w", "timeout": 0, "count": count}
        self.both(who, "POST", "/fetch/batch", lambda _: body)

    @rule(
        who=st.integers(0, 2), which=st.integers(-9, 30), how=st.sampled_from(("ack", "fail")), token=st.integers(1, 2)
    )
    def report(self, who: int, which: int, how: str, token: int) -> None:
        body = {"lease_token": token, **({"error": "e"} if how == "fail" else {})}
        self.both(who, "POST", f"/{how}/{{id}}", lambda _: body, "job", which)

    @rule(
        who=st.integers(0, 2),
        which=st.integers(-9, 30),
        act=st.sampled_from(("cancel", "hold", "approve", "reject", "retry", "requeue")),
    )
    def act(self, who: int, which: int, act: str) -> None:
        self.both(who, "POST", f"/jobs/{{id}}/{act}", lambda _: None, "job", which)

    @rule(who=st.integers(0, 2), which=st.integers(-9, 30), queue=st.sampled_from(QUEUES))
    def move(self, who: int, which: int, queue: str) -> None:
        self.both(who, "POST", "/jobs/{id}/move", lambda _: {"queue": queue}, "job", which)

    @rule(who=st.integers(0, 2), which=st.integers(-9, 30))
    def delete(self, who: int, which: int) -> None:
        self.both(who, "DELETE", "/jobs/{id}", lambda _: None, "job", which)

    @rule(who=st.integers(0, 2), which=st.integers(-9, 30))
    def look(self, who: int, which: int) -> None:
        self.both(who, "GET", "/jobs/{id}", lambda _: None, "job", which)
        self.both(who, "POST", "/jobs/bulk-get", lambda id_: {"ids": [id_]}, "job", which)

    @rule(who=st.integers(0, 2), queue=st.sampled_from(QUEUES))
    def begin_batch(self, who: int, queue: str) -> None:
        self.both(who, "POST", "/batch", lambda _: {"on_complete": {"queue": queue}})

    @rule(who=st.integers(0, 2), queue=st.sampled_from(QUEUES), which=st.integers(-5, 9))
    def join_batch(self, who: int, queue: str, which: int) -> None:
        self.both(who, "POST", "/enqueue", lambda id_: {"queue": queue, "batch_id": id_}, "batch", which)

    @rule(who=st.integers(0, 2), which=st.integers(-5, 9), seals=st.booleans())
    def batch(self, who: int, which: int, seals: bool) -> None:
        self.both(who, "GET", "/batches/{id}", lambda _: None, "batch", which)
        if seals:
            self.both(who, "POST", "/batches/{id}/seal", lambda _: None, "batch", which)

    @rule(who=st.integers(0, 2), queue=st.sampled_from(QUEUES))
    def chain(self, who: int, queue: str) -> None:
        steps = {"steps": [{"queue": queue}, {"queue": "mail"}]}
        self.both(who, "POST", "/enqueue", lambda _: {"queue": queue, "chain": steps})

    @rule(who=st.integers(0, 2), name=st.sampled_from(("a", "b")), queue=st.sampled_from(QUEUES))
    def plan(self, who: int, name: str, queue: str) -> None:
        self.both(who, "POST", "/schedules", lambda _: {"name": name, "queue": queue, "cron": "0 6 * * *"})

    @rule(who=st.integers(0, 2), which=st.integers(-3, 5), act=st.sampled_from(("GET", "DELETE", "run", "pause")))
    def schedule(self, who: int, which: int, act: str) -> None:
        method, tail = (act, "") if act in ("GET", "DELETE") else ("POST", f"/{act}")
        self.both(who, method, f"/schedules/{{id}}{tail}", lambda _: None, "sched", which)
        self.both(who, "GET", "/schedules", lambda _: None)
        self.both(who, "GET", "/schedules/a", lambda _: None)

    @rule(
        who=st.integers(0, 2),
        queue=st.sampled_from(QUEUES),
        act=st.sampled_from(("GET", "pause", "resume", "drain", "clear", "concurrency", "DELETE")),
    )
    def queue(self, who: int, queue: str, act: str) -> None:
        if act in ("GET", "DELETE"):
            tail = "?confirm=true&force=true" if act == "DELETE" else ""
            self.both(who, act, f"/queues/{queue}{tail}", lambda _: None)
        else:
            self.both(who, "POST", f"/queues/{queue}/{act}", lambda _: {"max": 1} if act == "concurrency" else None)

    @rule(who=st.integers(0, 2))
    def events(self, who: int) -> None:
        assert self.among[who].events() == self.alone[who].events()


# Without shrinking: it takes minutes, and a failure names the request.
_WALKS = settings(max_examples=25, stateful_step_count=60, phases=[Phase.generate], report_multiple_bugs=False)
Apart.TestCase.settings = _WALKS
TestTenantsApart = Apart.TestCase


# Leaks, to see that they are caught


def names_are_not_qualified(body: Any, principal: Principal) -> None:
    pass


def ids_are_not_compared(self: PlanContext, job_id: str) -> int:
    return sharding.shard_of_job(job_id, self.shard_count, job_id[36:])


def events_of_all(self: Any, queue: str) -> bool:
    return True


@pytest.mark.parametrize(
    ("where", "name", "leak"),
    [
        (app, "enter_body", names_are_not_qualified),
        (PlanContext, "shard_of_job", ids_are_not_compared),
        (events.Reach, "holds", events_of_all),
    ],
    ids=["names", "ids", "events"],
)
def test_a_leak_is_caught(where: Any, name: str, leak: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(where, name, leak)

    with pytest.raises(AssertionError):
        run_state_machine_as_test(Apart, settings=_WALKS)
