"""Nobody gives what they lack."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.access import ROLES, Permission, Principal, built_in
from corvo.model.errors import Refusal
from corvo.model.granting import Granter, contains_scope, granter_of, lacking
from corvo.model.namespaces import EVERY

RESOURCES = ["jobs", "queues", "auth", "something.new"]
ACTIONS = ["read", "list", "cancel", "write", "see"]
permissions = st.lists(
    st.builds(
        Permission,
        st.sampled_from(["*", *RESOURCES]),
        st.lists(st.sampled_from(["*", *ACTIONS]), max_size=4).map(tuple),
    ),
    max_size=4,
)


def may(held: list[Permission], resource: str, action: str) -> bool:
    return any(one.allows(resource, action) for one in held)


@given(permissions, permissions)
def test_what_is_covered_allows_nothing_more(held: list[Permission], wanted: list[Permission]) -> None:
    if lacking(held, wanted) is None:
        for resource in [*RESOURCES, "unheard"]:
            for action in [*ACTIONS, "unheard"]:
                assert may(held, resource, action) or not may(wanted, resource, action)


@given(permissions)
def test_everybody_covers_themselves_and_administrators_everybody(held: list[Permission]) -> None:
    assert lacking(held, held) is None
    assert lacking(ROLES["admin"], held) is None


@pytest.mark.parametrize(
    ("held", "wanted", "missing"),
    [
        (Permission("jobs", ("*",)), Permission("jobs", ("cancel", "read")), None),
        (Permission("jobs", ("write",)), Permission("jobs", ("cancel",)), None),
        (Permission("jobs", ("write",)), Permission("jobs", ("read",)), "jobs:read"),
        (Permission("jobs", ("write", "read", "list")), Permission("jobs", ("*",)), None),
        (Permission("jobs", ("write", "read")), Permission("jobs", ("*",)), "jobs:*"),
        (Permission("jobs", ("*",)), Permission("*", ("read",)), "*:read"),
        (Permission("*", ("read",)), Permission("jobs", ("read",)), None),
    ],
)
def test_a_permission_covers_another(held: Permission, wanted: Permission, missing: str | None) -> None:
    assert lacking([held], [wanted]) == missing


globs = st.text(alphabet="ab.*?[]", min_size=1, max_size=5)
names = st.text(alphabet="ab.", min_size=1, max_size=6)


@given(st.lists(globs, max_size=3), st.lists(globs, max_size=3), names)
def test_a_scope_inside_another_reaches_no_other_queue(outer: list[str], inner: list[str], name: str) -> None:
    if contains_scope(outer, inner):
        reached = not inner or any(fnmatchcase(name, glob) for glob in inner)
        assert not reached or not outer or any(fnmatchcase(name, glob) for glob in outer)


@pytest.mark.parametrize(
    ("outer", "inner", "is_inside"),
    [
        ([], [], True),
        ([], ["mail.*"], True),
        (["mail.*"], [], False),
        (["mail.*"], ["mail.*"], True),
        (["mail.*"], ["mail.send", "mail.slow.*"], True),
        (["mail.*"], ["mail*"], False),
        (["mail.*"], ["mail.send", "billing"], False),
        (["*"], ["anything"], True),
        (["m?il"], ["mail"], True),
        (["m?il"], ["m*l"], False),
    ],
)
def test_a_scope_is_inside_another(outer: list[str], inner: list[str], is_inside: bool) -> None:
    assert contains_scope(outer, inner) == is_inside


def a_principal(role: str = "admin", **fields: object) -> Principal:
    return Principal(name="k", kind="key", roles=(role,), permissions=ROLES[role], **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("principal", "reach", "is_cluster_wide"),
    [
        (built_in("root", "password", "admin"), EVERY, True),
        (a_principal(), EVERY, True),
        (a_principal().within("acme"), "acme", True),
        (a_principal(namespace="acme", home="acme"), "acme", False),
        (a_principal(queue_scope=("mail.*",)), "default", False),
        (a_principal("operator"), "default", True),
    ],
)
def test_only_a_cluster_administrator_reaches_every_namespace(
    principal: Principal, reach: str, is_cluster_wide: bool
) -> None:
    granter = granter_of(principal)

    assert (granter.reach, granter.is_cluster_wide) == (reach, is_cluster_wide)
    assert granter.reaches("acme") == (reach in (EVERY, "acme"))


def test_refusals_say_what_is_missing() -> None:
    granter = Granter("mailer", "acme", (Permission("jobs", ("*",)),), ("mail.*",))

    granter.require_permissions([Permission("jobs", ("cancel",))], "this key")
    granter.require_scope(["mail.send"], "this key")
    with pytest.raises(Refusal, match="the role auditor has the permission queues:read, which mailer lacks"):
        granter.require_permissions([Permission("queues", ("read",))], "the role auditor")
    with pytest.raises(Refusal, match="this key reaches queues outside the scope of mailer"):
        granter.require_scope([], "this key")
