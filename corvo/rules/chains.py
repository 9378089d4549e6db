"""Chains: when a job ends, the next one is created, on the shard of its queue.

    completed, more steps           the next step
    completed, no more or `exit`    `on_exit`, if there is one
    dead, cancelled, deleted        `on_failure`, if there is one

A step is created once: its id follows from the chain and the step's number. Every job carries the whole definition, so
a shard can continue the chain on its own.
"""

import msgspec

from corvo.model.job import Job
from corvo.model.job_extras import EXIT_STEP, FAILURE_STEP, OUTCOME_NAMES, Chain, ChainStep, JobExtras, Outcome
from corvo.model.json_input import keys_of
from corvo.model.sharding import shard_of_queue
from corvo.rules.errands.make_job import MakeJob
from corvo.rules.job_creation import NewJob, derived_id
from corvo.state.tables import Tables


def advance(tables: Tables, job: Job, chain: Chain, outcome: Outcome) -> None:
    if chain.step < 0:
        return  # it was the chain's handler, which ends the chain
    number, step, context = _next(tables, job, chain, outcome)
    if step is None:
        return
    shard = shard_of_queue(step.queue, tables.errands.shard_count)
    new = NewJob(
        id=derived_id(shard, chain.id, number, queue=step.queue),
        queue=step.queue,
        payload=_merged(context, step.payload),
        parent_id=job.id,
        extras=JobExtras(chain=msgspec.structs.replace(chain, step=number, exits=False)),
    )
    tables.errands.send(shard, MakeJob(new))


def _next(tables: Tables, job: Job, chain: Chain, outcome: Outcome) -> tuple[int, ChainStep | None, dict[str, object]]:
    if outcome is not Outcome.COMPLETED:
        context: dict[str, object] = {"failed_job_id": job.id, "failed_step": chain.step}
        return FAILURE_STEP, chain.on_failure, context | {"error": _reason(tables, job, outcome)}
    context = {"previous_job_id": job.id}
    if job.result:
        context["previous_result"] = msgspec.Raw(job.result)
    following = chain.step + 1
    if chain.exits or following >= len(chain.steps):
        return EXIT_STEP, chain.on_exit, context
    return following, chain.steps[following], context


def _reason(tables: Tables, job: Job, outcome: Outcome) -> str:
    """Why the job ended. Errors of earlier attempts do not count for a job that was cancelled or rejected."""
    errors = tables.errors(job.id) if outcome is Outcome.DEAD else []
    if errors and errors[-1].created_at == job.failed_at:
        return errors[-1].error
    return f"the job is {OUTCOME_NAMES[outcome]}"


def _merged(context: dict[str, object], payload: bytes) -> bytes:
    """The step's own keys take precedence."""
    return msgspec.json.encode({**context, **keys_of(payload)})
