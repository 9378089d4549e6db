"""What a line of the checklist is: a thing that a seed names, where it is in Corvo, and the steps that try it.

A seed is one of the five documents that the project was made from. `docs/seeds/page.py` prints the rows, and
`tests/docs/test_seeds.py` runs their steps against a real server, so the page cannot promise what the server lacks.

A step may keep parts of its answer under names in capitals: `$JOB` stands for what was kept as `JOB` in every later
step of the row. `$URL` is the server, `$TOMORROW` the time a day from now, `$DATE` the date of that.

In an expected answer `...` is any value, a type is any value of that type, and `ABSENT` is null or no field at all. An
object may have more fields than are named. A list that begins with `...` contains the elements behind it.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

ABSENT = object()

Status = Literal["works", "differs", "not yet"]


class Http(NamedTuple):
    request: str  # "POST /api/v1/enqueue"
    body: str = ""
    status: int = 200
    answer: Any = None  # an object, a list, or text that the answer contains
    keep: dict[str, str] = {}  # name → path in the answer, such as "jobs.0.id"
    headers: dict[str, str] = {}  # that the answer has, each containing this
    sends: dict[str, str] = {}  # headers of the request
    is_stream: bool = False  # only the head of the answer is read


class Shell(NamedTuple):
    line: str
    prints: Sequence[str] = ()  # pieces of standard output
    complains: str = ""  # piece of standard error
    code: int = 0


class Sql(NamedTuple):
    """A question to read.db."""

    query: str
    rows: Sequence[Sequence[Any]]


class Table(NamedTuple):
    """A table or view of read.db that has these columns, or an index on these."""

    name: str
    columns: str  # with spaces between them


Step = Http | Shell | Sql | Table


class Row(NamedTuple):
    id: str
    seed: str  # the thing in the seed's own words: a request, a command line, a name
    status: Status
    where: str  # where it is, or why ours differs, or what is missing
    area: str = ""  # of what is not there yet
    run: Sequence[Step] = ()  # what the seed promises, or what ours does where it differs
    before: Sequence[Step] = ()  # set-up, which must succeed
    fresh: Sequence[str] = ()  # queues that are emptied first
    building: bool = False  # is being built: its steps are written, its status will change soon


class Section(NamedTuple):
    title: str
    rows: Sequence[Row]


class Seed(NamedTuple):
    file: str
    sections: Sequence[Section]


def works(id: str, seed: str, where: str, *run: Step, before: Sequence[Step] = (), fresh: Sequence[str] = ()) -> Row:
    return Row(id, seed, "works", where, "", run, before, fresh)


def differs(id: str, seed: str, where: str, *run: Step, before: Sequence[Step] = (), fresh: Sequence[str] = ()) -> Row:
    """`run` tries our form."""
    return Row(id, seed, "differs", where, "", run, before, fresh)


def not_yet(
    id: str, seed: str, area: str, where: str, *run: Step, before: Sequence[Step] = (), fresh: Sequence[str] = ()
) -> Row:
    """`run` tries the seed's form, and the test sees it fail."""
    return Row(id, seed, "not yet", where, area, run, before, fresh)


def building(id: str, seed: str, where: str, *run: Step, before: Sequence[Step] = (), fresh: Sequence[str] = ()) -> Row:
    """Not yet, but soon. When the code is there, say `works` instead: nothing else changes."""
    return Row(id, seed, "not yet", where, "", run, before, fresh, building=True)


def get(path: str, answer: Any = None, status: int = 200, **keep: str) -> Http:
    return Http(f"GET /api/v1{path}", status=status, answer=answer, keep=keep)


def post(path: str, body: str = "", answer: Any = None, status: int = 200, **keep: str) -> Http:
    return Http(f"POST /api/v1{path}", body, status, answer, keep)


def put(path: str, body: str, answer: Any = None, status: int = 200, **keep: str) -> Http:
    return Http(f"PUT /api/v1{path}", body, status, answer, keep)


def delete(path: str, answer: Any = None, status: int = 200) -> Http:
    return Http(f"DELETE /api/v1{path}", status=status, answer=answer)


def enqueued(queue: str, payload: str = "{}", more: str = "", name: str = "JOB") -> Http:
    comma = ", " if more else ""
    body = f'{{"queue": "{queue}", "payload": {payload}{comma}{more}}}'
    return Http("POST /api/v1/enqueue", body, 201, None, {name: "job_id"})


def fetched(queue: str, worker: str = "seed-worker") -> Http:
    body = f'{{"queues": ["{queue}"], "worker_id": "{worker}", "hostname": "pod-1", "timeout": 5}}'
    return Http("POST /api/v1/fetch", body, 200, {"queue": queue}, {"JOB": "job_id", "TOKEN": "lease_token"})


def active(queue: str, payload: str = "{}", more: str = "") -> tuple[Step, ...]:
    """A job of the queue, held by a worker."""
    return enqueued(queue, payload, more), fetched(queue)


def completed(queue: str, payload: str = "{}", more: str = "") -> tuple[Step, ...]:
    return *active(queue, payload, more), post("/ack/$JOB", "{}")


def dead(queue: str, payload: str = "{}", error: str = "SMTP timeout", more: str = "") -> tuple[Step, ...]:
    return *active(queue, payload, more), post("/fail/$JOB", f'{{"error": "{error}", "retry": false}}')


def has_state(state: str) -> Http:
    return get("/jobs/$JOB", {"state": state})
