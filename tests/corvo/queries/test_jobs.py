"""Many jobs at once: found, unknown, moved, and too large for one answer."""

import pytest

from corvo.model.errors import Refusal
from corvo.model.limits import CLAIMED_BYTES_MAX
from corvo.queries import jobs
from corvo.queries.jobs import BulkGetBody, FoundJob, GetJobs, plan_jobs
from tests.support.builders import an_asking, enqueue, job_id
from tests.support.machine import Machine

LARGE = b'"' + b"x" * (CLAIMED_BYTES_MAX // 2) + b'"'


def test_each_is_found_or_refused_in_its_place() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2))

    first, unknown, second = GetJobs([job_id(1), job_id(9), job_id(2)]).read(machine.tables)

    assert isinstance(first, FoundJob) and isinstance(second, FoundJob)
    assert (first.record.job.id, second.record.job.id) == (job_id(1), job_id(2))
    assert unknown.code == "JOB_NOT_FOUND"


def test_the_answer_keeps_the_order_asks_once_for_each_and_leaves_out_the_unknown() -> None:
    machines = [Machine(shard, 2) for shard in range(2)]
    ids = [job_id(1, shard=1), job_id(9), job_id(1), job_id(1, shard=1)]
    machines[0].apply(enqueue(ids[2]))
    machines[1].apply(enqueue(ids[0]))

    plan = plan_jobs(an_asking(2), BulkGetBody(ids))
    answer = plan.conclude([ask.read(machines[shard].tables) for shard, ask in plan.calls])

    assert [(shard, ask.job_ids) for shard, ask in plan.calls] == [(1, [ids[0]]), (0, [ids[1], ids[2]])]
    assert [job.id for job in answer.body.jobs] == [ids[0], ids[2]]


def test_what_does_not_fit_is_asked_for_again() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2, 3, payload=LARGE))
    plan = plan_jobs(an_asking(1), BulkGetBody([job_id(number) for number in (1, 2, 3)]))

    again = plan.conclude([plan.calls[0][1].read(machine.tables)])
    assert again.calls == [(0, GetJobs([job_id(3)]))]
    answer = again.conclude([again.calls[0][1].read(machine.tables)])

    assert len(answer.body.jobs) == 3


def test_an_answer_that_would_grow_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "BULK_GET_BYTES_MAX", 100)
    machine = Machine()
    machine.apply(enqueue(1, 2, payload=b'"' + b"x" * 80 + b'"'))
    plan = plan_jobs(an_asking(1), BulkGetBody([job_id(1), job_id(2)]))

    with pytest.raises(Refusal) as refused:
        plan.conclude([plan.calls[0][1].read(machine.tables)])

    assert refused.value.code == "PAYLOAD_TOO_LARGE"


def test_an_id_that_no_job_can_have_is_named() -> None:
    with pytest.raises(Refusal) as refused:
        plan_jobs(an_asking(), BulkGetBody([job_id(1), "nonsense"]))

    assert (refused.value.code, refused.value.field) == ("VALIDATION_ERROR", "job_ids[1]")
