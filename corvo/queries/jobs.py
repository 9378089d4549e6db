"""Many jobs by their ids, each read from the shard that holds it. Unknown ids are left out."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Body, Endpoint, Plan, PlanContext, Read, spread
from corvo.model.errors import Refusal, Refused, invalid
from corvo.model.job import JobId
from corvo.model.job_extras import bytes_of
from corvo.model.limits import BULK_GET_BYTES_MAX, CLAIMED_BYTES_MAX, JOBS_PER_REQUEST_MAX
from corvo.queries.job import JobRecord, JobView, job_view
from corvo.state.tables import Tables

_NEXT_TIME = Refused("OVERLOADED", "not reached: the jobs before it fill an answer; send the rest again", 1)


class FoundJob(msgspec.Struct, array_like=True, tag=1):
    record: JobRecord


class GetJobs(Read, tag=1003):
    job_ids: Annotated[list[str], Meta(max_length=JOBS_PER_REQUEST_MAX)]

    result: ClassVar[Any] = list[FoundJob | Refused]

    def read(self, tables: Tables) -> list[FoundJob | Refused]:
        """Jobs that do not fit into one answer are refused, and asked for again."""
        found: list[FoundJob | Refused] = []
        room = CLAIMED_BYTES_MAX
        for job_id in self.job_ids:
            if room <= 0:
                found.append(_NEXT_TIME)
                continue
            try:
                job = tables.require_job(job_id)
            except Refusal as refusal:
                found.append(refusal.to_refused())
                continue
            found.append(FoundJob(JobRecord(job, tables.errors(job.id))))
            room -= len(job.payload) + len(job.result) + len(job.checkpoint) + bytes_of(job.extras)
        return found


class BulkGetBody(Body):
    job_ids: Annotated[list[JobId], Meta(min_length=1, max_length=JOBS_PER_REQUEST_MAX)]


class JobsView(msgspec.Struct):
    jobs: list[JobView]


def plan_jobs(context: PlanContext, body: BulkGetBody) -> Plan:
    for number, job_id in enumerate(body.job_ids):
        if not context.is_job_id(job_id):
            raise invalid(f"job_ids[{number}]", f"no job can have the id {job_id!r}")
    wanted = list(dict.fromkeys(body.job_ids))
    found: dict[str, JobView] = {}

    def ask(job_ids: list[str]) -> Plan:
        groups = spread(job_ids, lambda job_id: context.find_shard_of_job(job_id))
        asked = [(shard, [job_ids[number] for number in numbers]) for shard, numbers in groups.items()]
        calls = [(shard, GetJobs(some)) for shard, some in asked]

        def conclude(results: list[list[FoundJob | Refused]]) -> Answer | Plan:
            left = []
            for (_, some), answers in zip(asked, results, strict=True):
                for job_id, answer in zip(some, answers, strict=True):
                    if isinstance(answer, FoundJob):
                        found[job_id] = job_view(answer.record)
                    elif answer.code == _NEXT_TIME.code:
                        left.append(job_id)
                    elif answer.code != "JOB_NOT_FOUND":
                        raise answer.to_refusal()
            _check_size(found)
            if left:
                return ask(left)
            return Answer(200, JobsView([found[job_id] for job_id in wanted if job_id in found]))

        return Plan([*calls], conclude)

    return ask(wanted)


def _check_size(found: dict[str, JobView]) -> None:
    size = sum(len(bytes(job.payload)) for job in found.values())
    if size > BULK_GET_BYTES_MAX:
        raise Refusal(
            "PAYLOAD_TOO_LARGE",
            f"{len(found)} of these jobs hold {size} bytes of payload, at most {BULK_GET_BYTES_MAX} are answered;"
            " ask for fewer at a time",
        )


ENDPOINTS = (
    Endpoint(
        name="bulk_get",
        access="jobs:read",
        method="POST",
        repeats="freely",
        path="/jobs/bulk-get",
        summary="Many jobs by their ids, in that order; unknown ids are left out",
        body=BulkGetBody,
        example={"job_ids": ["s01_job_18a1f0c2d3e4f5a60a1b2c3d4f"]},
        answers={200: JobsView},
        refusals=("PAYLOAD_TOO_LARGE",),
        plan=plan_jobs,
    ),
)
