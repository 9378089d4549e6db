"""Ack: a worker reports that a job is done.

A job completes once. A repeated ack under the same lease gets the same answer; an ack under a lease that has ended is
refused and changes nothing.
"""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from corvo.endpoint import (
    Answer,
    Body,
    Endpoint,
    Operation,
    Plan,
    PlanContext,
)
from corvo.model.errors import Refused
from corvo.model.job import Count, JobId, RequestId, ShortText
from corvo.model.json_input import document, no_document
from corvo.model.lifecycle import State, Verb
from corvo.model.limits import FETCH_COUNT_MAX, PAYLOAD_BYTES_DEFAULT
from corvo.ops.jobs.lease import holds, lost, plan_each
from corvo.state.tables import Tables
from corvo.state.transitions import change

_COMPLETE = Verb.COMPLETE  # a member lookup on an enum is a call, and this is a hot path
LeaseToken = Annotated[int, Meta(ge=1, le=2**53 - 1, description="the token from the claim")]


class AckBody(Body):
    result: msgspec.Raw = msgspec.field(default_factory=no_document)
    checkpoint: msgspec.Raw = msgspec.field(default_factory=no_document)
    lease_token: LeaseToken | None = None
    step_status: Annotated[
        Literal["continue", "exit"] | None,
        Meta(description="of a chain's step: `exit` ends the chain with this job"),
    ] = None
    exit_reason: ShortText = ""


class AckBatchItem(AckBody, kw_only=True):
    job_id: JobId


class AckBatchBody(Body):
    acks: Annotated[list[AckBatchItem], Meta(min_length=1, max_length=FETCH_COUNT_MAX)]


class Acked(msgspec.Struct):
    status: str = "ok"


class AckOutcome(msgspec.Struct, omit_defaults=True):
    """`status`, or the error."""

    status: str | None = None
    error: str | None = None
    code: str | None = None


class AckedBatch(msgspec.Struct):
    acked: int
    results: list[AckOutcome]


class AckItem(msgspec.Struct, array_like=True, gc=False):
    job_id: str
    lease_token: Count = 0
    result: bytes = b""
    checkpoint: bytes = b""
    exits: bool = False  # the chain ends with this step


class Ack(Operation, tag=3):
    ask_id: RequestId  # identifies this request: repeated after a crash, it gets its old answer
    items: list[AckItem]

    result: ClassVar[Any] = list[Refused | None]

    def apply(self, tables: Tables) -> list[Refused | None]:
        return [self._ack(tables, item) for item in self.items]

    def _ack(self, tables: Tables, item: AckItem) -> Refused | None:
        job = tables.find_job(item.job_id)
        if job is not None:
            if holds(job, item.lease_token):
                job.result = item.result
                if item.checkpoint:
                    job.checkpoint = item.checkpoint
                if item.exits and job.extras is not None and job.extras.chain is not None:
                    job.extras.chain = msgspec.structs.replace(job.extras.chain, exits=True)
                job.completed_at = tables.now
                job.settled_id = self.ask_id
                tables.queue(job.queue).completed += 1
                change(tables, job, _COMPLETE)
                return None
            if job.state == State.COMPLETED and (job.settled_id == self.ask_id or item.lease_token == job.lease_token):
                return None
        return lost(tables, job, item.job_id, item.lease_token)


def ack_item(job_id: str, body: AckBody, at: str = "") -> AckItem:
    return AckItem(
        job_id,
        body.lease_token or 0,
        document(body.result, f"{at}result", PAYLOAD_BYTES_DEFAULT),
        document(body.checkpoint, f"{at}checkpoint"),
        body.step_status == "exit",
    )


def ack_outcome(refused: Refused | None) -> AckOutcome:
    return AckOutcome("ok") if refused is None else AckOutcome(error=refused.message, code=refused.code)


def _plan_one(context: PlanContext, body: AckBody, job_id: str) -> Plan:
    operation = Ack(context.mint.claim_id(), [ack_item(job_id, body)])

    def conclude(results: list[Any]) -> Answer:
        refused = results[0][0]
        if refused is not None:
            raise refused.to_refusal()
        return Answer(200, Acked())

    return Plan([(context.shard_of_job(job_id), operation)], conclude)


def _plan_batch(context: PlanContext, body: AckBatchBody) -> Plan:
    ask_id = context.mint.claim_id()
    items = [ack_item(ack.job_id, ack, f"acks[{number}].") for number, ack in enumerate(body.acks)]

    def answer(outcomes: list[Any]) -> Answer:
        return Answer(200, AckedBatch(outcomes.count(None), [ack_outcome(outcome) for outcome in outcomes]))

    return plan_each(context, items, lambda some: Ack(ask_id, some), answer)


ENDPOINTS = (
    Endpoint(
        name="ack_batch",
        access="jobs:ack",
        method="POST",
        repeats="by key",
        path="/ack/batch",
        summary="Complete up to 512 jobs; each has its own result",
        body=AckBatchBody,
        example={"acks": [{"job_id": "s01_job_18a1f0c2d3e4f5a60a1b2c3d4f", "lease_token": 1}]},
        answers={200: AckedBatch},
        refusals=("JOB_NOT_FOUND",),
        plan=_plan_batch,
    ),
    Endpoint(
        name="ack",
        access="jobs:ack",
        method="POST",
        repeats="by key",
        path="/ack/{job_id}",
        summary="Complete a job",
        body=AckBody,
        body_optional=True,
        example={"result": {"sent": True}, "lease_token": 1},
        answers={200: Acked},
        refusals=("JOB_NOT_FOUND", "LEASE_LOST", "WRONG_STATE"),
        plan=_plan_one,
    ),
)
