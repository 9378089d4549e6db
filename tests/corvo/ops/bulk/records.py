"""Records of bulk operations: how they come into being, are claimed and reported on."""

from typing import Any

from corvo.ops.bulk.advance_bulk import AdvanceBulk
from corvo.ops.bulk.begin_bulk import BeginBulk
from corvo.ops.bulk.claim_bulk import ClaimBulk
from corvo.queries.bulk import GetBulk, ListBulks
from corvo.rules.bulk import Action, Bulk, BulkCounts, BulkFailure, Order
from tests.support.machine import Machine

LEASE_MS = 30_000


def bulk_id(number: int = 1) -> str:
    return f"bulk_{number:026x}"


def begin(number: int = 1, job_ids: tuple[str, ...] = (), total: int = 9, **fields: Any) -> BeginBulk:
    wanted = b"" if job_ids else b'{"queue":"mail"}'
    order, ending = fields.pop("order", Order(Action.RETRY)), fields.pop("ending", "")
    return BeginBulk(bulk_id(number) + ending, order, wanted, list(job_ids), total, fields.pop("is_exact", True))


def claim(claim: int = 1, node: str = "node-1", gateway: int = 11) -> ClaimBulk:
    return ClaimBulk(node, gateway, claim, LEASE_MS)


def advance(step: int, *job_ids: str, number: int = 1, claim: int = 1, **fields: Any) -> AdvanceBulk:
    tally = fields.pop("tally", BulkCounts())
    cursor, is_last = fields.pop("cursor", f"behind {step}"), fields.pop("is_last", False)
    return AdvanceBulk(bulk_id(number), claim, step, tally, list(job_ids), cursor, is_last, LEASE_MS, **fields)


def a_tally(affected: int = 0, **errors: int) -> BulkCounts:
    samples = [BulkFailure(f"job-{code}-{n}", code, "no") for code, count in errors.items() for n in range(count)]
    return BulkCounts(affected, errors, samples)


def look(machine: Machine, number: int = 1) -> Bulk:
    return GetBulk(bulk_id(number)).read(machine.tables)


def listed(machine: Machine, ended_max: int = 1000) -> list[str]:
    return [bulk.id for bulk in ListBulks(ended_max).read(machine.tables)]


def a_running_bulk() -> Machine:
    machine = Machine()
    machine.apply(begin(), claim())
    return machine


def an_ended_bulk() -> Machine:
    machine = a_running_bulk()
    machine.apply(advance(1, is_last=True))
    return machine
