"""SetQuotas: what a namespace may store; what is not given has no limit."""

import msgspec
import pytest

from corvo.model.access_records import Quotas
from corvo.model.errors import Refusal
from tests.support.access import ACME, a_desk
from tests.support.machine import nothing_changes


def test_quotas_are_set_shown_and_taken_away() -> None:
    desk = a_desk("acme")
    answer = desk.ask("set_namespace_quotas", "acme", max_jobs=7, max_queues=3)
    assert (answer.body.status, answer.version) == ("updated", desk.version)
    assert desk.tables.access.state.namespaces["acme"].quotas == Quotas(jobs_max=7, queues_max=3)
    shown = msgspec.to_builtins(desk.ask("namespace_quotas", "acme", by=ACME).body)
    assert shown == {"max_jobs": 7, "max_payload_bytes": 0, "max_queues": 3}
    desk.ask("set_namespace_quotas", "acme")
    assert desk.tables.access.state.namespaces["acme"].quotas is None
    with nothing_changes(desk):
        desk.ask("set_namespace_quotas", "acme")


@pytest.mark.parametrize("number", [-1, 2**53, 1.5, "5"])
def test_a_quota_is_a_count(number: object) -> None:
    with pytest.raises(Refusal) as refused:
        a_desk("acme").ask("set_namespace_quotas", "acme", max_jobs=number)
    assert refused.value.code == "VALIDATION_ERROR"


def test_only_the_cluster_gives_quotas_and_only_to_tenants_that_exist() -> None:
    desk = a_desk("acme")
    with pytest.raises(Refusal) as refused:
        desk.ask("set_namespace_quotas", "acme", by=ACME)
    assert refused.value.code == "FORBIDDEN"
    with pytest.raises(Refusal) as refused:
        desk.ask("set_namespace_quotas", "other")
    assert refused.value.code == "NAMESPACE_NOT_FOUND"
