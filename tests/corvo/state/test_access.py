"""The records of access in the state: they survive a restart, and a copy that follows them never differs."""

from hypothesis import given
from hypothesis import strategies as st

from corvo.model.access import Permission
from corvo.model.access_records import (
    AccessState,
    ApiKey,
    NamespaceRecord,
    RoleRecord,
    SsoSettings,
    with_news,
)
from corvo.state.access import CHANGES_KEPT, AccessTable
from tests.support.machine import Machine

NAMES = st.sampled_from(["one", "two", "three"])
CHANGES = st.lists(
    st.tuples(st.sampled_from(["key", "role", "namespace", "sso"]), NAMES, st.booleans(), st.integers(1, 9)),
    max_size=30,
)


def change(table: AccessTable, kind: str, name: str, is_drop: bool, number: int) -> None:
    state = table.state
    match kind:
        case "key" if not is_drop:
            table.put_key(ApiKey(name, name, "", expires_at=number))
        case "key" if name in state.keys:
            table.drop_key(name)
        case "role" if not is_drop:
            table.put_role(RoleRecord(name, (Permission("jobs", ("read",) * number),)))
        case "role" if name in state.roles:
            table.drop_role(name)
        case "namespace" if not is_drop:
            table.put_namespace(NamespaceRecord(name, number))
        case "namespace" if name in state.namespaces:
            table.drop_namespace(name)
        case "sso":
            table.put_sso(SsoSettings(name, updated_at=number))


@given(CHANGES, CHANGES, CHANGES)
def test_a_copy_that_follows_is_the_state(first: list, second: list, third: list) -> None:  # type: ignore[type-arg]
    machine, copy = Machine(), AccessState()
    for changes in (first, second, third):
        with machine.by_hand() as tables:
            for one in changes:
                change(tables.access, *one)
        news = machine.tables.access.news(copy.version, is_current=True)
        copy = with_news(copy, news)
        assert copy == machine.tables.access.state
        machine.flush()
    machine.restart()
    assert machine.tables.access.state == copy


def test_a_copy_of_the_newest_version_is_told_nothing() -> None:
    table = Machine().tables.access
    table.put_role(RoleRecord("auditor", ()))

    news = table.news(1, is_current=False)

    assert (news.version, news.is_current, news.is_whole, news.roles) == (1, False, False, [])


def test_a_copy_is_told_only_what_changed_after_its_version() -> None:
    table = Machine().tables.access
    for name in ("one", "two", "three"):
        table.put_role(RoleRecord(name, ()))
    table.drop_role("one")

    news = table.news(2, is_current=True)

    assert (news.is_whole, [role.name for role in news.roles], news.gone_roles) == (False, ["three"], ["one"])
    assert (news.keys, news.namespaces, news.sso) == ([], [], None)


def test_a_copy_that_is_far_behind_or_of_another_history_is_told_everything() -> None:
    table = Machine().tables.access
    for number in range(CHANGES_KEPT + 2):
        table.put_role(RoleRecord("one", (), number))

    assert table.news(1, is_current=True).is_whole
    assert not table.news(2, is_current=True).is_whole
    assert table.news(CHANGES_KEPT + 3, is_current=True).is_whole


def test_the_use_of_a_key_is_stored_and_does_not_raise_the_version() -> None:
    machine = Machine()
    with machine.by_hand() as tables:
        tables.access.put_key(ApiKey("k", "k", ""))
    with machine.by_hand() as tables:
        tables.access.touch_key(ApiKey("k", "k", "", last_used_at=7))
    machine.flush()
    machine.restart()

    state = machine.tables.access.state
    assert (state.version, state.keys["k"].last_used_at) == (1, 7)
