"""Random jobs and random filters: SQL finds what a plain loop over the shards' own records finds, in that order.

Each set of jobs is one database, in one of the states that the mirror leaves it in: the indexes of texts empty,
halfway, or up to date, and then some jobs changed, deleted, born again. Two tenants have jobs of the same names, and
each question comes from one of them, with or without a queue scope. Bounds are made small, so that every road is
taken: few jobs or a walk, one slice or many, one page or many.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Any, get_args

import msgspec
import pytest

from corvo.model.job import PRIORITY_NAMES, Job, JobError, Priority
from corvo.model.job_extras import JobExtras
from corvo.model.lifecycle import STATE_NAMES, State
from corvo.model.name_fields import qualify_names
from corvo.model.namespaces import DEFAULT, id_ending, qualify
from corvo.model.reach import Reach
from corvo.model.timestamps import to_rfc3339
from corvo.queries.search import SearchBody, SortName
from gateway.mirror import indexing
from gateway.search import candidates, index_scan, search, session
from gateway.search.database import ReadSession, TenantDb, new_session
from tests.gateway.search.conftest import Written
from tests.support.builders import NOW, SECOND, a_job, job_id
from tests.support.read_dbs import ServerPlace

REACHES = (
    *(Reach(), Reach(), Reach(), Reach("acme"), Reach("acme")),
    *(Reach("default", ("ma*", "p[!x]sh")), Reach("acme", ("s?s",)), Reach("umbrella")),
)
SETS, CASES = 50, 100  # 5,000 in all
SETS_ON_POSTGRESQL = 5
JOBS = 25

WORDS = (
    "welcome",
    "Welcome",
    "invoice",
    "user7@example.com",
    "naïve",
    'a"b',
    "50%",
    "_x_",
    "zażółć",
    "ab",
    "\\n",
    "é𝕏",
)
PAYLOADS: tuple[Any, ...] = (
    {"to": "user7@example.com", "template": "welcome", "amount": 100},
    {"to": "ada@example.com", "template": "invoice", "amount": 7.5, "items": [1, 2, 3]},
    {"note": 'say "hi"\n50%', "path": "a\\b", "nested": {"template": "welcome"}},
    {"name": "zażółć gęślą", "template": None},
    [1, "two", None],
    "only text: _x_",
    17,
    {},
)
TAGS: tuple[dict[str, Any], ...] = (
    {},
    {"tenant": "acme"},
    {"tenant": "umbrella", "tier": 1},
    {"tier": "1", "vip": True},
    {"tier": 1.0, "vip": 1},
    {"vip": False, 'odd "key"': "x", "$.a[0]": "%"},
    {"tenant": None, "big": 2**70},
)
ERRORS = ("SMTP timeout", "smtp refused", "50% of nothing", "zero\0byte", "naïve")
JQ: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    ('.template == "welcome"', lambda p: isinstance(p, dict) and p.get("template") == "welcome"),
    (".amount > 50", lambda p: isinstance(p, dict) and isinstance(p.get("amount"), int) and p["amount"] > 50),
    ('.nested.template == "welcome"', lambda p: isinstance(p, dict) and p.get("nested") == {"template": "welcome"}),
    (".items | length > 2", lambda p: isinstance(p, dict) and len(p.get("items", ())) > 2),
    ('.note | startswith("say \\"hi")', lambda p: isinstance(p, dict) and str(p.get("note", "")).startswith('say "hi')),
)
MOMENTS = [
    f"{name}_{side}"
    for name in ("created", "scheduled", "started", "completed", "expire")
    for side in ("after", "before")
]
FILTERS = [
    *("queue", "state", "priority", "worker_id", "job_id_prefix", "parent_id", "unique_key", "batch_id", "tags"),
    *("payload_contains", "payload_jq", "has_errors", "error_contains", "attempt_min", "attempt_max", *MOMENTS),
]


def _shapes(dice: random.Random) -> list[tuple[list[str], str, str]]:
    """Which filters stand together, and in which order. Not too many: turning one into SQL takes its time."""
    return [
        (dice.sample(FILTERS, dice.choice([0, 1, 1, 2, 2, 3])), dice.choice(get_args(SortName)), order)
        for order in ("asc", "desc")
        for _ in range(90)
    ]


SHAPES = _shapes(random.Random(0))


class World:
    """The records of one shard: what a plain loop looks at."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.errors: dict[str, list[JobError]] = {}

    def expected(self, body: SearchBody, reach: Reach) -> list[str]:
        fits = [job for job in self.jobs.values() if reach.holds(job.queue) and self._fits(job, body)]
        return [job.id for job in sorted(fits, key=_sort_key(body))]

    def _fits(self, job: Job, body: SearchBody) -> bool:
        errors = [error.error for error in self.errors.get(job.id, [])]
        extras = job.extras or JobExtras()
        payload, tags = job.payload.decode(), msgspec.json.decode(job.tags or b"{}")
        due = _due(job)
        checks = (
            body.queue in (None, job.queue),
            not body.state or STATE_NAMES[job.state] in body.state,
            body.priority in (None, PRIORITY_NAMES[job.priority]),
            body.worker_id in (None, job.worker_id),
            job.id.startswith(body.job_id_prefix or ""),
            body.parent_id in (None, job.parent_id),
            body.unique_key in (None, extras.unique_key),
            body.batch_id in (None, extras.batch_id),
            all(key in tags and _is_same(tags[key], value) for key, value in body.tags.items()),
            body.payload_contains is None or body.payload_contains in payload,
            body.payload_jq is None or dict(JQ)[body.payload_jq](msgspec.json.decode(payload)),
            body.has_errors in (None, bool(errors)),
            body.error_contains is None or any(body.error_contains in error for error in errors),
            body.attempt_min is None or job.attempt >= body.attempt_min,
            body.attempt_max is None or job.attempt <= body.attempt_max,
            _is_within(job.created_at, body.created_after, body.created_before),
            _is_within(due, body.scheduled_after, body.scheduled_before),
            _is_within(job.started_at, body.started_after, body.started_before),
            _is_within(job.completed_at, body.completed_after, body.completed_before),
            _is_within(extras.expire_at, body.expire_after, body.expire_before),
        )
        return all(checks)


def _is_same(tag: Any, value: Any) -> bool:
    """JSON's types: a truth is no number."""
    if (
        tag is None
        or isinstance(tag, bool) != isinstance(value, bool)
        or isinstance(tag, str) != isinstance(value, str)
    ):
        return False
    return bool(tag == value)


def _is_within(moment: int, after: str | None, before: str | None) -> bool:
    if after is None and before is None:
        return True
    return (
        bool(moment)
        and (after is None or to_rfc3339(moment) > after)
        and (before is None or to_rfc3339(moment) < before)
    )


def _due(job: Job) -> int:
    """Shown only while the job waits for its moment."""
    return job.due_at if job.state in (State.SCHEDULED, State.RETRYING) else 0


def _sort_key(body: SearchBody) -> Callable[[Job], Any]:
    sign = 1 if body.order == "asc" else -1

    def key(job: Job) -> Any:
        value = _due(job) if body.sort == "scheduled_at" else getattr(job, body.sort)
        born = (sign * job.created_at, sign * int(job.id.split("_")[2]))
        if body.sort in ("created_at", "priority", "attempt"):
            return (sign * value, *born)
        return (not value, sign * value, *born)

    return key


def _random_job(dice: random.Random, number: int) -> Job:
    def moment() -> int:
        return dice.choice([0, NOW + dice.randrange(5) * SECOND])

    encode = msgspec.json.encode
    payload = encode(dice.choice(PAYLOADS))
    if dice.random() < 0.2:
        payload = payload.replace(b"w", b"\\u0077").replace("ż".encode(), b"\\u017c")
    extras = None
    if dice.random() < 0.4:
        extras = JobExtras(
            unique_key=dice.choice(["", "k1", "k2"]), batch_id=dice.choice(["", "b1"]), expire_at=moment()
        )
    namespace = "acme" if number % 3 == 0 else "default"
    job = a_job(
        number,
        queue=qualify(namespace, dice.choice(["mail", "sms", "push"])),
        state=dice.choice(list(State)),
        priority=dice.choice([Priority.NORMAL, *Priority]),
        payload=payload,
        attempt=dice.choice([0, 0, 1, 1, 2, 5]),
        created_at=NOW + dice.randrange(8) * SECOND,
        due_at=moment(),
        started_at=moment(),
        completed_at=moment(),
        failed_at=moment(),
        worker_id=qualify(namespace, worker) if (worker := dice.choice(["", "w1", "w2"])) else "",
        tags=encode(tags) if (tags := dice.choice(TAGS)) else b"",
        result=dice.choice([b"", b'{"ok":true}']),
        parent_id=dice.choice(["", "p"]),
        extras=extras,
    )
    return msgspec.structs.replace(job, id=job.id + id_ending(namespace))


def _random_errors(dice: random.Random, job: Job) -> list[JobError]:
    count = dice.choice([0, 0, 0, 1, 2])
    return [JobError(job.id, claim, claim, dice.choice(ERRORS), "", NOW) for claim in range(1, count + 1)]


def _random_body(dice: random.Random, world: World) -> SearchBody:
    def moment() -> str:
        return to_rfc3339(NOW + dice.randrange(8) * SECOND)

    needles = [*WORDS, '"template":"', "example", "\\u0077", "}"]
    some_job = dice.choice([*world.jobs, job_id(999)])
    options: dict[str, Callable[[], Any]] = {
        "queue": lambda: dice.choice(["mail", "sms", "none"]),
        "state": lambda: dice.sample(STATE_NAMES, dice.randint(1, 4)),
        "priority": lambda: dice.choice(PRIORITY_NAMES),
        "worker_id": lambda: "w1",
        "job_id_prefix": lambda: dice.choice(["s00_job_", some_job, some_job[:-1]]),
        "parent_id": lambda: "p",
        "unique_key": lambda: dice.choice(["k1", "k9"]),
        "batch_id": lambda: "b1",
        "tags": lambda: {key: value for key, value in dice.choice(TAGS[1:]).items() if value is not None},
        "payload_contains": lambda: dice.choice(needles),
        "payload_jq": lambda: dice.choice(JQ)[0],
        "has_errors": lambda: dice.choice([True, False]),
        "error_contains": lambda: dice.choice(["SMTP", "smtp", "50%", "o\0b", "e", "naïve"]),
        "attempt_min": lambda: dice.choice([0, 1, 2, 6]),
        "attempt_max": lambda: dice.choice([0, 1, 4]),
        **dict.fromkeys(MOMENTS, moment),
    }
    names, sort, order = dice.choice(SHAPES)
    return SearchBody(
        **{name: options[name]() for name in names},
        sort=sort,
        order=order,
        limit=dice.choice([9, 50, 50, 50]),
    )


class OneReading:
    """A `ReadDb` with one connection and no threads."""

    def __init__(self, written: Written) -> None:
        self.session = new_session(written.path, 60_000)
        self.is_postgresql = self.session.is_postgresql

    async def ask(self, question: Callable[[ReadSession], Any]) -> Any:
        return self.session.ask(question)


async def _all_pages(read_db: Any, body: SearchBody) -> tuple[list[str], int]:
    answer = await search.answer(read_db, body)
    total = answer.total
    found = [job.id for job in answer.jobs]
    while answer.has_more:
        answer = await search.answer(read_db, msgspec.structs.replace(body, cursor=answer.cursor))
        assert answer.total == total
        found += [job.id for job in answer.jobs]
    return found, total


@pytest.mark.parametrize("seed", range(SETS))
def test_sql_finds_what_a_plain_loop_finds(written: Written, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    if seed >= SETS_ON_POSTGRESQL and isinstance(written.place, ServerPlace):
        pytest.skip("enough of them: a question takes longer there")
    dice = random.Random(seed)
    world = World()
    monkeypatch.setattr(indexing, "CHUNK", 10)
    monkeypatch.setattr(session, "TEXTS_MAX", 10_000)
    _write(dice, written, world, range(JOBS))
    for _ in range(dice.choice([0, 1, 2, 100])):  # slices that have no time index one chunk each
        written.writer.index(0)
    _write(dice, written, world, dice.sample(range(JOBS + 10), 10))
    _forget(dice, written, world, 5)
    if dice.random() < 0.5:
        written.writer.index(0)
    reading = OneReading(written)

    async def compare() -> None:
        for _ in range(CASES):
            monkeypatch.setattr(candidates, "FEW_MAX", dice.choice([2, 15, 10_000]))
            monkeypatch.setattr(index_scan, "SLICE_MIN", dice.choice([4, 1_000, 1_000]))
            body, reach = _random_body(dice, world), dice.choice(REACHES)
            if reach.namespace != DEFAULT:
                qualify_names(body, reach.namespace)
            if body.queue is not None and not reach.holds(body.queue):
                body.queue = None
            found, total = await _all_pages(TenantDb(reading, reach), body)
            expected = world.expected(body, reach)
            assert found == expected, (body, reach)
            assert total == len(expected), (body, reach)

    asyncio.run(compare())
    reading.session.close()


def _write(dice: random.Random, written: Written, world: World, numbers: Any) -> None:
    for number in numbers:
        job = _random_job(dice, number)
        new = _random_errors(dice, job) if job.id not in world.jobs else []
        world.jobs[job.id] = job
        world.errors.setdefault(job.id, []).extend(new)
        written.put(job)
        if new:
            written.put(*new)  # apart, as in a scan


def _forget(dice: random.Random, written: Written, world: World, count: int) -> None:
    for name in dice.sample(list(world.jobs), count):
        written.forget(name, [error.claim for error in world.errors[name]])
        del world.jobs[name], world.errors[name]
