"""Names and ids of namespaces: qualified inside, shown without, and never mistaken for each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.endpoint import PlanContext
from corvo.model.errors import Refusal
from corvo.model.ids import Minter
from corvo.model.limits import BATCH_ID, BULK_ID, JOB_ID, NAMESPACE, QUALIFIED_NAME, QUEUE_NAME, SCHEDULE_ID
from corvo.model.namespaces import (
    DEFAULT,
    checked_namespace,
    namespace_of,
    namespace_of_id,
    qualify,
    shown_name,
)
from corvo.rules.job_creation import derived_id

namespaces = st.from_regex(NAMESPACE, fullmatch=True)
names = st.from_regex(QUEUE_NAME, fullmatch=True)


@given(namespaces, names)
def test_a_name_is_shown_as_its_tenant_gave_it(namespace: str, name: str) -> None:
    inside = qualify(namespace, name)

    assert QUALIFIED_NAME.fullmatch(inside)
    assert (namespace_of(inside), shown_name(inside)) == (namespace, name)


@given(namespaces, names, namespaces, names)
def test_names_of_two_tenants_never_meet(one: str, name: str, other: str, other_name: str) -> None:
    if one != other:
        assert qualify(one, name) != qualify(other, other_name)


@given(namespaces)
def test_every_kind_of_id_ends_with_its_namespace(namespace: str) -> None:
    mint = Minter(lambda: 1_000, 0xABC).within(namespace)
    ids = {
        JOB_ID: mint.job_id(3),
        BATCH_ID: mint.batch_id(3),
        SCHEDULE_ID: mint.schedule_id(3),
        BULK_ID: mint.bulk_id(),
    }

    for pattern, made in ids.items():
        assert pattern.fullmatch(made), made
        assert namespace_of_id(made) == namespace
    assert namespace_of_id(derived_id(3, "chain", 1, queue=qualify(namespace, "mail"))) == namespace


@given(namespaces, namespaces)
def test_an_id_of_another_namespace_does_not_exist(mine: str, other: str) -> None:
    mint = Minter(lambda: 1_000, 0xABC)
    context = PlanContext(4, 1_000, mint, lambda: 1_000).within(mine)
    foreign = mint.within(other)
    for made, find in (
        (foreign.job_id(1), context.shard_of_job),
        (foreign.batch_id(1), context.shard_of_batch),
        (foreign.schedule_id(1), context.shard_of_schedule),
    ):
        if mine == other:
            assert find(made) == 1
        else:
            with pytest.raises(Refusal, match=r"no (job|batch|schedule) has the id"):
                find(made)


def test_ids_of_all_namespaces_come_from_one_clock() -> None:
    mint = Minter(lambda: 1_000, 0xABC)

    assert len({mint.job_id(0)[:24], mint.within("acme").job_id(0)[:24], mint.job_id(0)[:24]}) == 3


@pytest.mark.parametrize("name", ["", "Acme", "a_b", "-a", "a-", "a" * 64, "a|b", "ä", "a b", "a\n"])
def test_what_is_no_namespace_is_refused(name: str) -> None:
    with pytest.raises(Refusal, match="is not a namespace"):
        checked_namespace(name)


def test_the_default_namespace_adds_nothing() -> None:
    assert qualify(DEFAULT, "mail") == "mail"
    assert Minter(lambda: 1_000, 0xABC).within(DEFAULT).job_id(0).count("_") == 2
