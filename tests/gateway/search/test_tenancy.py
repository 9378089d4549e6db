"""A statement that could read the rows of others is not run, and one that is run reads no more than its tenant's."""

import asyncio

import pytest
import sqlalchemy as sa

from corvo.model.errors import Refusal
from corvo.model.job import JobError
from corvo.model.reach import Reach
from corvo.model.timestamps import to_rfc3339
from corvo.queries.batches_list import BatchesQuery
from corvo.queries.error_groups import ErrorGroupsQuery
from corvo.queries.search import FulltextQuery, SearchBody
from gateway.readdb.schema import batches, job_errors, jobs, queues
from gateway.readdb.text_index import job_tags, marker
from gateway.search import batches_list, error_groups, fulltext, search, throughput, workers
from gateway.search import queues as queue_list
from gateway.search.database import TenantSession
from gateway.search.filters import residual
from gateway.search.index_scan import slice_statement
from gateway.search.sorts import Sort
from gateway.search.tenancy import Unconfined, check, in_scope, of_queue, of_tenant
from tests.support.builders import NOW, a_job

ACME = Reach("acme")
IN_MAIL = Reach("acme", ("mail*",))
OF_ERROR = job_errors.c.job_id == jobs.c.id
ONE = sa.literal_column("1")
SEVERAL = sa.select(jobs.c.seq).where(of_tenant(jobs)).cte("several")


@pytest.mark.parametrize(
    "statement",
    [
        sa.select(jobs.c.id).where(of_tenant(jobs)),
        sa.select(jobs.c.id).where(of_queue(jobs.c.queue)),
        sa.select(jobs.c.id).where(of_tenant(jobs), sa.exists(sa.select(ONE).where(OF_ERROR))),
        sa.select(jobs.c.id, sa.select(job_errors.c.error).where(OF_ERROR).scalar_subquery()).where(of_tenant(jobs)),
        sa.select(jobs.c.id).join_from(SEVERAL, jobs, jobs.c.seq == SEVERAL.c.seq),
        sa.union_all(*[sa.select(jobs.c.id).where(of_tenant(jobs), jobs.c.priority == n) for n in (1, 2)]),
    ],
)
def test_statements_of_one_tenant(statement):
    check(statement)


@pytest.mark.parametrize(
    "statement",
    [
        sa.select(jobs.c.id),
        sa.select(sa.func.count()).select_from(jobs),
        sa.select(jobs.c.id).where(jobs.c.namespace == "acme"),  # a value that somebody chose
        sa.select(jobs.c.id).where(jobs.c.queue == "acme|mail"),
        sa.select(jobs.c.id).where(sa.or_(of_tenant(jobs), jobs.c.priority == 1)),
        sa.select(jobs.c.id).where(sa.not_(of_tenant(jobs))),
        sa.select(jobs.c.id, job_errors.c.error).where(of_tenant(jobs)),  # every error beside every job
        sa.select(jobs.c.id).join_from(jobs, job_errors, job_errors.c.attempt == jobs.c.attempt).where(of_tenant(jobs)),
        sa.select(jobs.c.id).where(of_tenant(jobs), sa.exists(sa.select(ONE).select_from(job_errors))),
        sa.select(jobs.c.id, sa.select(sa.func.count()).select_from(queues).scalar_subquery()).where(of_tenant(jobs)),
        sa.union_all(sa.select(jobs.c.id).where(of_tenant(jobs)), sa.select(jobs.c.id)),
        sa.select(sa.select(jobs.c.id).limit(10).subquery()),
        sa.select(jobs.alias().c.id).where(of_tenant(jobs.alias())),
        sa.select(job_tags.c.doc).where(job_tags.c.key == "k"),
    ],
)
def test_statements_that_could_read_rows_of_others(statement):
    with pytest.raises(Unconfined):
        check(statement)


def test_a_scope_must_be_used_too():
    of_acme = sa.select(jobs.c.id).where(of_tenant(jobs))

    check(of_acme.where(*in_scope(jobs.c.queue, IN_MAIL)), has_scope=True)
    check(sa.select(jobs.c.id).where(of_queue(jobs.c.queue)), has_scope=True)
    check(sa.select(batches.c.id).where(of_tenant(batches)), has_scope=True)  # compared by who reads it
    for statement in (of_acme, of_acme.where(*in_scope(job_errors.c.queue, IN_MAIL))):
        with pytest.raises(Unconfined):
            check(statement, has_scope=True)


def test_an_unconfined_statement_is_not_run(written, read_db):
    with pytest.raises(Unconfined):
        asyncio.run(read_db.within(ACME).ask(lambda session: session.rows(sa.select(jobs.c.id))))


def test_a_queue_outside_the_reach_cannot_be_asked_for(read_db):
    for reach, queue in ((ACME, "mail"), (IN_MAIL, "acme|bills")):
        with pytest.raises(Refusal, match="outside the scope"):
            asyncio.run(read_db.within(reach).ask(lambda session: None, queue))


def test_globs_mean_on_both_databases_what_they_mean_elsewhere(written, read_db):
    names = ["a", "ab", "a.b", "a-b", "b", "A", "a_b", "aXb", "x/a"]
    written.put(*[a_job(number, queue=f"acme|{name}") for number, name in enumerate(names, 1)])
    for scope in (("a*",), ("a?b",), ("[!a]*",), ("a[.-]b", "b"), ("*a",), ("a{b",)):
        reach = Reach("acme", scope)
        statement = sa.select(jobs.c.queue).where(of_tenant(jobs), *in_scope(jobs.c.queue, reach))
        found = asyncio.run(read_db.within(reach).ask(lambda session, statement=statement: session.rows(statement)))

        expected = [f"acme|{one}" for one in names if reach.holds(f"acme|{one}")]
        assert sorted(queue for (queue,) in found) == sorted(expected)


def test_the_marker_of_a_namespace_is_its_own_and_never_changes():
    assert marker("default") == "\uf356\ue9f5\ue249"
    assert len({marker(f"tenant-{number}") for number in range(1_000)}) == 1_000


@pytest.mark.parametrize("sort", ["created_at", "started_at", "completed_at", "failed_at", "scheduled_at"])
@pytest.mark.parametrize("body", [{}, {"state": ["dead", "held"]}, {"queue": "acme|mail"}])
def test_a_page_begins_at_the_first_row_of_the_tenant(explain, sort, body):
    asked = SearchBody(**body, sort=sort)
    order = Sort(asked, ACME)

    for leg in order.legs_from(None):
        _, steps = explain(slice_statement(order, leg, None, residual(asked, ACME), 1_000, 51))

        assert not reading_others(steps), steps


def test_every_list_begins_at_the_first_row_of_the_tenant(explain):
    span = throughput.Span(1, 2)
    for statement in (
        queue_list._OF_TENANT,
        *workers._ALL,
        workers._ACTIVE_JOBS,
        throughput._over(span, None, ACME),
        throughput._newest(span, None, ACME),
        error_groups._groups(ErrorGroupsQuery(), to_rfc3339(NOW), ACME),
        batches_list._slice(BatchesQuery(), None, 10),
        batches_list._slice(BatchesQuery(state="open"), None, 10),
    ):
        _, steps = explain(statement)

        assert not reading_others(steps), steps


def reading_others(steps: list[str]) -> list[str]:
    """Steps over a mirrored table that begin neither at a namespace nor at a queue, a job or a document."""
    tables = ("jobs", "job_errors", "queues", "queue_minutes", "workers", "presence", "batches", "documents")
    of_table = [step for step in steps if [*step.split(), ""][1] in tables]
    ends = ("(namespace=?", "(queue=?", "(job_id=?", "(rowid=?", "USING INTEGER PRIMARY KEY", "(id=?")
    return [step for step in of_table if not any(end in step for end in ends)]


def test_a_small_tenant_does_not_pay_for_a_large_one(written, read_db):
    """Ten jobs beside thousands that match just as well: SQLite counts the steps that it takes for each answer."""
    texts = {"payload": b'{"word":"common"}', "tags": b'{"kind":"letter"}'}
    written.put(*[a_job(number, queue="mail", **texts) for number in range(1, 6_001)])
    written.put(*[JobError(a_job(number).id, 1, 1, "boom", "", NOW, queue="mail") for number in range(1, 2_001)])
    own = [a_job(number, queue="acme|mail", **texts) for number in range(7_001, 7_011)]
    for job in own:
        job.id += "_acme"
    written.put(*own)
    while written.writer.index(1_000):
        pass
    if read_db.is_postgresql:
        pytest.skip("it has no counter of steps")
    asked = (
        (search.answer, SearchBody()),
        (search.answer, SearchBody(payload_contains="common")),
        (search.answer, SearchBody(tags={"kind": "letter"})),
        (search.answer, SearchBody(has_errors=True)),
        (search.answer, SearchBody(sort="started_at")),
        (search.answer, SearchBody(payload_jq='.word == "common"')),
        (fulltext.answer, FulltextQuery(q="common")),
        (error_groups.answer, ErrorGroupsQuery()),
    )
    for answer, body in asked:
        small, large = (steps_for(read_db, reach, answer, body) for reach in (ACME, Reach()))
        assert small < 5_000, (answer.__module__, body)
        assert small <= large


def steps_for(read_db, reach, answer, body) -> int:
    """In hundreds of instructions of SQLite's machine, over the whole answer."""
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    def on_own_thread(session: TenantSession) -> None:
        session._session._connection.set_progress_handler(count, 100)  # type: ignore[attr-defined]

    async def ask() -> None:
        db = read_db.within(reach)
        await db.ask(on_own_thread)
        await answer(db, body)

    read_db._threads._max_workers = 1
    asyncio.run(ask())
    return counted
