"""Documents are sealed on their way to the shards, and opened on their way back, for their own place alone."""

import re
from typing import Any

import msgspec
import pytest

from corvo.model.errors import Refusal
from corvo.model.job import Priority
from corvo.model.job_extras import Chain, ChainStep, JobExtras
from corvo.model.json_input import keys_of
from corvo.model.sealed_text import is_sealed
from corvo.ops.batches.add_to_batch import AddToBatch
from corvo.ops.jobs.ack import Ack, AckItem
from corvo.ops.jobs.enqueue import Enqueue
from corvo.ops.jobs.fetch import Claimed
from corvo.ops.jobs.heartbeat import Beat, Heartbeat
from corvo.rules.batches import BatchSpec
from corvo.rules.job_creation import NewJob
from corvo.runtime.payload_keys import PayloadKey
from gateway.shards.sealing import Sealing

OLD, NEW = PayloadKey("old", b"o" * 32), PayloadKey("new", b"n" * 32)
SECRET = b'{"iban":"DE02 1203","n":1.10}'
JOB = "s00_job_18a1f0c2d3e4f5a60a1b2c3d4e"


def a_job(**changes: Any) -> NewJob:
    return msgspec.structs.replace(NewJob(JOB, "mail", SECRET, Priority.NORMAL, checkpoint=b'{"at":5}'), **changes)


def claimed(payload: bytes, checkpoint: bytes = b"", job_id: str = JOB) -> Claimed:
    return Claimed(job_id, "mail", payload, 1, 3, 60_000, 1, checkpoint, b"")


def test_an_enqueue_leaves_as_ciphertext_and_a_fetch_brings_the_same_bytes() -> None:
    sealing = Sealing([NEW, OLD])
    asked = Enqueue([a_job()])
    sent = sealing.seal(asked).jobs[0]

    assert asked.jobs[0].payload == SECRET, "what is asked again elsewhere is not sealed twice"
    assert is_sealed(sent.payload) and is_sealed(sent.checkpoint)
    assert not re.search(rb"iban|DE02|\"at\"", msgspec.msgpack.encode(sent))
    [got] = sealing.open([claimed(sent.payload, sent.checkpoint)])
    assert (got.payload, got.checkpoint) == (SECRET, b'{"at":5}')
    assert sealing.seal(asked).jobs[0].payload != sent.payload, "each time with another nonce"


def test_results_and_checkpoints_of_workers_are_sealed() -> None:
    sealing = Sealing([NEW])
    ack = sealing.seal(Ack(1, [AckItem(JOB, 1, SECRET, SECRET), AckItem(JOB)]))
    beat = sealing.seal(Heartbeat([Beat(JOB, 1, b'{"percent":5}', SECRET)])).beats[0]

    assert is_sealed(ack.items[0].result) and is_sealed(ack.items[0].checkpoint)
    assert (ack.items[1].result, ack.items[1].checkpoint) == (b"", b"")
    assert is_sealed(beat.checkpoint) and beat.progress == b'{"percent":5}', "progress stays as it is"


@pytest.mark.parametrize(
    ("job_id", "field"), [("s00_job_other", "payload"), (JOB, "result"), (JOB, "checkpoint"), (JOB, "template")]
)
def test_a_document_does_not_open_in_another_job_or_field(job_id: str, field: str) -> None:
    sealing = Sealing([NEW])
    with pytest.raises(Refusal, match="another job or another field"):
        sealing.opened(sealing.document(SECRET, JOB, "payload"), job_id, field)


def test_a_document_that_was_changed_does_not_open() -> None:
    sealing = Sealing([NEW])
    sealed = sealing.document(SECRET, JOB, "payload")
    swapped = sealed.replace(b"~payload~", b"~result~")
    with pytest.raises(Refusal, match="it was changed"):
        sealing.opened(swapped, JOB, "result")
    damaged = sealed[:-6] + (b"A" if sealed[-6:-5] != b"A" else b"B") + sealed[-5:]
    with pytest.raises(Refusal, match="it was changed"):
        sealing.opened(damaged, JOB, "payload")


def test_old_keys_open_and_the_first_one_seals() -> None:
    before = Sealing([OLD]).document(SECRET, JOB, "payload")
    rotated = Sealing([NEW, OLD])
    assert rotated.opened(before, JOB, "payload") == SECRET
    assert b"~new~" not in before and b"1~new~" in rotated.document(SECRET, JOB, "payload")
    with pytest.raises(Refusal, match="this node lacks the key old") as refused:
        Sealing([NEW]).opened(before, JOB, "payload")
    assert (refused.value.code, refused.value.status) == ("PAYLOAD_KEY_MISSING", 503)


def test_without_keys_nothing_is_sealed_and_what_was_is_refused() -> None:
    off = Sealing([])
    asked = Enqueue([a_job()])
    assert not off.is_on and off.seal(asked) is asked
    assert off.open([claimed(SECRET)])[0].payload == SECRET
    with pytest.raises(Refusal, match="lacks the key new"):
        off.open([claimed(Sealing([NEW]).document(SECRET, JOB, "payload"))])


@pytest.mark.parametrize("document", [b"{}", b"null", b'{"$sealed":1}', b'{"a":"$sealed"}', b'"{\\"$sealed\\":\\"1~"'])
def test_documents_from_before_and_those_that_look_alike_stay(document: bytes) -> None:
    assert Sealing([NEW]).opened(document, JOB, "payload") == document


def merged(context: dict[str, object], payload: bytes) -> bytes:
    """As the machine does it, for chains."""
    return msgspec.json.encode({**context, **keys_of(payload)})


@pytest.mark.parametrize("step", [b'{"a":1}', b"[1,2]", b"{}", b'{"previous_job_id":"own"}'])
@pytest.mark.parametrize("result", [b'{"total":5}', b"7", b""])
def test_the_step_of_a_chain_is_what_it_would_be_without_encryption(step: bytes, result: bytes) -> None:
    sealing = Sealing([NEW])
    chain = Chain("chain_1", 0, (ChainStep("mail"), ChainStep("mail", step)))
    sealed = sealing.seal(Enqueue([a_job(extras=JobExtras(chain=chain))])).jobs[0].extras.chain.steps[1].payload
    stored = sealing.document(result, JOB, "result")
    plain: dict[str, object] = {"previous_job_id": JOB} | ({"previous_result": msgspec.Raw(result)} if result else {})
    kept: dict[str, object] = {"previous_job_id": JOB} | ({"previous_result": msgspec.Raw(stored)} if stored else {})

    found = sealing.opened(merged(kept, sealed), "s00_job_next", "payload")

    assert msgspec.json.decode(found) == msgspec.json.decode(merged(plain, step))


def test_a_callback_has_its_payload_and_the_outcome_of_the_batch() -> None:
    sealing = Sealing([NEW])
    spec = BatchSpec(on_complete=ChainStep("mail", b'{"a":1,"batch":"mine"}'))
    sent = sealing.seal(AddToBatch(1, "batch_1", spec, True, [a_job()]))
    assert is_sealed(sent.jobs[0].payload) and is_sealed(sent.create.on_complete.payload)
    made = msgspec.json.encode({**keys_of(sent.create.on_complete.payload), "batch": {"total": 1}})
    assert msgspec.json.decode(sealing.opened(made, "s00_job_x", "payload")) == {"a": 1, "batch": {"total": 1}}
