"""SetRateLimit: four numbers, each of them the server's unless it is given."""

import msgspec
import pytest

from corvo.model.access_records import RateLimit
from corvo.model.errors import Refusal
from tests.support.access import ACME, ROOT, a_desk
from tests.support.machine import nothing_changes


def test_limits_are_set_shown_and_taken_away() -> None:
    desk = a_desk("acme")
    answer = desk.ask("set_namespace_rate_limit", "acme", read_rps=5, write_burst=0.5)
    assert (answer.body.status, answer.version) == ("updated", desk.version)
    assert desk.tables.access.state.namespaces["acme"].limits == RateLimit(read_rps=5, write_burst=0.5)
    assert msgspec.to_builtins(desk.ask("namespace_rate_limit", "acme", by=ACME).body) == {
        "using_defaults": False,
        "read_rps": 5.0,
        "write_burst": 0.5,
    }
    desk.ask("set_namespace_rate_limit", "acme", read_rps=None)
    assert msgspec.to_builtins(desk.ask("namespace_rate_limit", "acme").body) == {"using_defaults": True}
    with nothing_changes(desk):
        desk.ask("set_namespace_rate_limit", "acme")


def test_the_default_namespace_can_be_limited_too() -> None:
    desk = a_desk()
    desk.ask("set_namespace_rate_limit", "default", read_rps=5)

    assert [one.name for one in desk.ask("namespaces").body] == ["default"]
    assert not desk.ask("namespace_rate_limit", "default").body.using_defaults


@pytest.mark.parametrize("number", [0, -1, 1e9, "5", True])
def test_a_limit_is_a_positive_number(number: object) -> None:
    with pytest.raises(Refusal) as refused:
        a_desk("acme").ask("set_namespace_rate_limit", "acme", read_rps=number)
    assert refused.value.code == "VALIDATION_ERROR"


def test_an_unknown_namespace_is_not_found() -> None:
    for name in ("other", "nonsense|x"):
        with pytest.raises(Refusal) as refused:
            a_desk("acme").ask("set_namespace_rate_limit", name, read_rps=1, by=ROOT)
        assert refused.value.code == "NAMESPACE_NOT_FOUND"


def test_a_tenant_cannot_change_its_own_limits() -> None:
    with pytest.raises(Refusal) as refused:
        a_desk("acme").ask("set_namespace_rate_limit", "acme", read_rps=1, by=ACME)
    assert refused.value.code == "FORBIDDEN"
