"""What a request may see."""

from hypothesis import given
from hypothesis import strategies as st

from corvo.model.namespaces import qualify
from corvo.model.reach import Reach

namespaces = st.sampled_from(["default", "acme", "beta", "acme-2"])
names = st.sampled_from(["mail", "mail.send", "reports", "m"])


@given(namespaces, namespaces, names)
def test_a_namespace_has_its_own_queues_and_no_others(mine: str, other: str, name: str) -> None:
    assert Reach(mine).holds(qualify(other, name)) is (mine == other)


@given(namespaces, namespaces, names)
def test_a_scope_never_widens_the_namespace(mine: str, other: str, name: str) -> None:
    assert Reach(mine, ("*",)).holds(qualify(other, name)) is (mine == other)


def test_a_scope_is_compared_with_names_as_the_tenant_knows_them() -> None:
    reach = Reach("acme", ("mail.*", "reports"))

    assert reach.holds("acme|mail.send") and reach.holds("acme|reports")
    assert not reach.holds("acme|mail") and not reach.holds("mail.send")


def test_what_has_no_queue_is_seen_without_a_scope_only() -> None:
    nowhere = qualify("acme", "")

    assert Reach("acme").holds(nowhere)
    assert not Reach("acme", ("mail.*",)).holds(nowhere)
    assert not Reach("beta").holds(nowhere)
