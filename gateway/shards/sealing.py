"""Encryption at rest: documents are sealed on their way to the shards and opened on their way back.

Payloads, results and checkpoints, the steps of chains, callbacks of batches and templates of schedules never leave a
gateway as plain text. So the logs, the disks, read.db, snapshots and backups hold none. Whatever a gateway asks of a
shard passes `seal`, whatever a shard answers passes `open`; without keys neither is called.

A document is bound to its job and its field: one that was moved to another job on a disk does not open. What a job
gets from a chain, a batch or a schedule is bound to that.

The machine merges the result of a step into the payload of the next one, and the outcome of a batch into its callback,
without reading either. `_opened` takes such a merged document apart and merges the plain texts by the same rule.
"""

import base64
import os
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from corvo.model.errors import Refusal
from corvo.model.job import Job
from corvo.model.job_extras import Chain, ChainStep
from corvo.model.json_input import keys_of
from corvo.model.sealed_text import MARK, is_sealed, parse_sealed, sealed_text
from corvo.ops.batches.add_to_batch import AddToBatch
from corvo.ops.jobs.ack import Ack
from corvo.ops.jobs.enqueue import Enqueue
from corvo.ops.jobs.fetch import Claimed, Fetch
from corvo.ops.jobs.heartbeat import Heartbeat
from corvo.ops.schedules.create_schedule import CreateSchedule
from corvo.ops.schedules.pause_schedule import PauseSchedule
from corvo.ops.schedules.resume_schedule import ResumeSchedule
from corvo.ops.schedules.update_schedule import UpdateSchedule
from corvo.queries.batches import GetBatch
from corvo.queries.job import GetJob, JobRecord
from corvo.queries.jobs import FoundJob, GetJobs
from corvo.queries.schedule_view import GetSchedule
from corvo.rules.batches import Batch, BatchSpec
from corvo.rules.job_creation import NewJob
from corvo.runtime.payload_keys import PayloadKey
from corvo.state.schedules import Schedule

NONCE_BYTES = 12
OF_JOB = ("payload", "result", "checkpoint")
ENCRYPTED = "(encrypted)"  # in lists, instead of what this node cannot decrypt
TEMPLATE = "template"  # the field of what a later job is made from
replace = msgspec.structs.replace


def unopened(why: str) -> Refusal:
    return Refusal("PAYLOAD_KEY_MISSING", f"a payload cannot be decrypted: {why}", retry_after_ms=5_000)


class Sealing:
    def __init__(self, keys: list[PayloadKey], dice: Callable[[int], bytes] = os.urandom) -> None:
        """The first key seals; all open. Without any, sealed documents are refused."""
        self._keys = _ciphers(keys)
        self._active = keys[0].id if keys else ""
        self._dice = dice

    @property
    def is_on(self) -> bool:
        return bool(self._active)

    # To the shards

    def seal(self, ask: Any) -> Any:
        """The operation with its documents sealed. The one that is handed in stays as it is: it may be sent again."""
        seal = _SEALED.get(type(ask))
        return ask if seal is None or not self._active else seal(self, ask)

    def document(self, document: bytes, subject: str, field: str) -> bytes:
        if not document:
            return document
        nonce = self._dice(NONCE_BYTES)
        data = nonce + self._keys[self._active].encrypt(nonce, document, _bound_to(subject, field))
        return sealed_text(self._active, subject, field, base64.b64encode(data).decode())

    def new_job(self, job: NewJob) -> NewJob:
        payload = self.document(job.payload, job.id, "payload")
        checkpoint = self.document(job.checkpoint, job.id, "checkpoint")
        extras = job.extras
        if extras is not None and extras.chain is not None:
            extras = replace(extras, chain=_of_chain(extras.chain, self._sealed_step(extras.chain.id)))
        return replace(job, payload=payload, checkpoint=checkpoint, extras=extras)

    def batch(self, spec: BatchSpec, batch_id: str) -> Any:
        return _of_callbacks(spec, self._sealed_step(batch_id))

    def _sealed_step(self, subject: str) -> "OfStep":
        return lambda step: replace(step, payload=self.document(step.payload, subject, TEMPLATE))

    # From the shards

    def open(self, result: Any) -> Any:
        """The result with its documents opened. Refuses what cannot be opened."""
        if type(result) is list:
            return [self.open(item) for item in result]
        opened = _OPENED.get(type(result))
        return result if opened is None else opened(self, result)

    def opened(self, document: bytes, subject: str, field: str) -> bytes:
        """A document as it was, whether it was sealed or not."""
        return self._opened(document, subject, field) if is_sealed(document) else document

    def _opened(self, document: bytes, subject: str, field: str) -> bytes:
        try:
            found = msgspec.json.decode(document, type=dict[str, msgspec.Raw])
            mark = found.pop(MARK, None)
            own = None if mark is None else parse_sealed(msgspec.json.decode(mark))
        except (ValueError, RecursionError):
            return document  # it only looks alike
        if own is not None and not found:
            return self._decrypt(own, subject, field)
        if own is None and mark is not None:
            return document
        if field != "payload":
            return document
        merged = self._with_previous_result(found)
        if own is not None:
            # The chain's own keys stand before the step's, and a batch's outcome after the callback's.
            inside = keys_of(self._decrypt(own, subject, field))
            merged = {**merged, **inside, **({"batch": merged["batch"]} if "batch" in merged else {})}
        return msgspec.json.encode(merged)

    def _with_previous_result(self, found: dict[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
        result = bytes(found.get("previous_result", b""))
        if is_sealed(result) and "previous_job_id" in found:
            job_id = str(msgspec.json.decode(found["previous_job_id"]))
            found["previous_result"] = msgspec.Raw(self.opened(result, job_id, "result"))
        return found

    def _decrypt(self, sealed: tuple[str, str, str, str], subject: str, field: str) -> bytes:
        from cryptography.exceptions import InvalidTag  # lazy: few servers have sealed documents

        key_id, bound_subject, bound_field, data = sealed
        is_own = (bound_subject, bound_field) == (subject, field)
        is_made_from = bound_field == TEMPLATE and field in ("payload", TEMPLATE)
        if not is_own and not is_made_from:
            raise unopened("it belongs to another job or another field")
        key = self._keys.get(key_id)
        if key is None:
            raise unopened(f"this node lacks the key {key_id}; add it to --payload-key-file")
        try:
            raw = base64.b64decode(data)
            return key.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], _bound_to(bound_subject, bound_field))
        except (InvalidTag, ValueError):
            raise unopened(f"it was changed, or not made with this key {key_id}") from None

    def shown(self, document: Any, subject: str, field: str) -> Any:
        """For lists, which one document that cannot be opened must not break."""
        raw = bytes(document)
        if not is_sealed(raw):
            return document
        try:
            return msgspec.Raw(self.opened(raw, subject, field))
        except Refusal:
            return ENCRYPTED

    def job(self, job: Job) -> Job:
        changed: dict[str, Any] = {
            field: self.opened(document, job.id, field)
            for field in OF_JOB
            if is_sealed(document := getattr(job, field))
        }
        if job.extras is not None and job.extras.chain is not None:
            chain = _of_chain(job.extras.chain, self.opened_step(job.extras.chain.id))
            changed["extras"] = replace(job.extras, chain=chain)
        return replace(job, **changed) if changed else job

    def opened_step(self, subject: str) -> "OfStep":
        return lambda step: replace(step, payload=self.opened(step.payload, subject, TEMPLATE))


class Cipher(Protocol):
    def encrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes: ...

    def decrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes: ...


def _ciphers(keys: list[PayloadKey]) -> dict[str, Cipher]:
    if not keys:
        return {}
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # lazy: it takes long to load

    return {key.id: AESGCM(key.secret) for key in keys}


def _bound_to(subject: str, field: str) -> bytes:
    return f"corvo payload 1~{subject}~{field}".encode()


OfStep = Callable[[ChainStep], ChainStep]


def _of_chain(chain: Chain, of_step: OfStep) -> Chain:
    return replace(
        chain,
        steps=tuple(map(of_step, chain.steps)),
        on_failure=None if chain.on_failure is None else of_step(chain.on_failure),
        on_exit=None if chain.on_exit is None else of_step(chain.on_exit),
    )


def _of_callbacks(holder: Any, of_step: OfStep) -> Any:
    """Of a `BatchSpec` or a `Batch`."""
    names = ("on_complete", "on_success", "on_failure")
    steps = {name: of_step(step) for name in names if (step := getattr(holder, name)) is not None}
    return replace(holder, **steps) if steps else holder


def _seal_ack(sealing: Sealing, ack: Ack) -> Ack:
    items = [
        replace(
            item,
            result=sealing.document(item.result, item.job_id, "result"),
            checkpoint=sealing.document(item.checkpoint, item.job_id, "checkpoint"),
        )
        for item in ack.items
    ]
    return replace(ack, items=items)


def _seal_heartbeat(sealing: Sealing, heartbeat: Heartbeat) -> Heartbeat:
    beats = [
        replace(beat, checkpoint=sealing.document(beat.checkpoint, beat.job_id, "checkpoint"))
        for beat in heartbeat.beats
    ]
    return replace(heartbeat, beats=beats)


def _seal_batch(sealing: Sealing, add: AddToBatch) -> AddToBatch:
    create = None if add.create is None else sealing.batch(add.create, add.batch_id)
    return replace(add, create=create, jobs=[sealing.new_job(job) for job in add.jobs])


def _seal_schedule(sealing: Sealing, create: CreateSchedule) -> CreateSchedule:
    payload = sealing.document(create.terms.payload, "schedule", TEMPLATE)
    return replace(create, terms=replace(create.terms, payload=payload))


def _seal_update(sealing: Sealing, update: UpdateSchedule) -> UpdateSchedule:
    if update.terms.payload is None:
        return update
    payload = sealing.document(update.terms.payload, "schedule", TEMPLATE)
    return replace(update, terms=replace(update.terms, payload=payload))


_SEALED: dict[type, Callable[[Sealing, Any], Any]] = {
    Enqueue: lambda sealing, ask: replace(ask, jobs=[sealing.new_job(job) for job in ask.jobs]),
    AddToBatch: _seal_batch,
    Ack: _seal_ack,
    Heartbeat: _seal_heartbeat,
    CreateSchedule: _seal_schedule,
    UpdateSchedule: _seal_update,
}


def _open_claimed(sealing: Sealing, claimed: Claimed) -> Claimed:
    if not is_sealed(claimed.payload) and not is_sealed(claimed.checkpoint):
        return claimed
    return replace(
        claimed,
        payload=sealing.opened(claimed.payload, claimed.job_id, "payload"),
        checkpoint=sealing.opened(claimed.checkpoint, claimed.job_id, "checkpoint"),
    )


def _open_schedule(sealing: Sealing, schedule: Schedule) -> Schedule:
    payload = sealing.opened(schedule.terms.payload, "schedule", TEMPLATE)
    return replace(schedule, terms=replace(schedule.terms, payload=payload))


_OPENED: dict[type, Callable[[Sealing, Any], Any]] = {
    Claimed: _open_claimed,
    JobRecord: lambda sealing, record: replace(record, job=sealing.job(record.job)),
    FoundJob: lambda sealing, found: replace(found, record=replace(found.record, job=sealing.job(found.record.job))),
    Batch: lambda sealing, batch: _of_callbacks(batch, sealing.opened_step(batch.id)),
    Schedule: _open_schedule,
}

# What shows documents: only results of these are looked at.
OPENING = frozenset(
    (
        *(Fetch, GetJob, GetJobs, GetBatch, GetSchedule),
        *(CreateSchedule, UpdateSchedule, PauseSchedule, ResumeSchedule),
    )
)
NO_KEYS = Sealing([])
