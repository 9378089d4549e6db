"""RotateKey: the new key works at once, the old one for a while, and a repeated request makes no third one."""

import msgspec
import pytest

from corvo.model.errors import Refusal
from corvo.model.granting import granter_of
from corvo.ops.access.rotate_key import RotateKey
from corvo.rules import access as rules
from tests.support.access import ACME, KEY_MANAGER, ROOT, a_desk
from tests.support.builders import NOW, SECOND
from tests.support.machine import nothing_changes

HOUR = 3_600 * SECOND


def test_the_old_key_works_until_the_overlap_is_over() -> None:
    desk = a_desk()
    desk.make_role()
    old_hash = desk.make_key(role="worker", queue_scope="mail.*")
    desk.ask("bind_role", old_hash, role="auditor")
    before = desk.key(old_hash)

    answer = desk.ask("rotate_key", old_hash, overlap="1h", at=NOW + HOUR)

    old, new = desk.key(old_hash), desk.key(answer.body.key_hash)
    assert answer.version == desk.version and answer.body.api_key.startswith(new.prefix)
    assert old == msgspec.structs.replace(before, expires_at=NOW + 2 * HOUR)
    assert new == msgspec.structs.replace(
        before, key_hash=new.key_hash, prefix=new.prefix, created_at=NOW + HOUR, replaces=old_hash
    )


def test_without_an_overlap_the_old_key_ends_at_once_whatever_the_clocks_say() -> None:
    desk = a_desk()
    old_hash = desk.make_key()
    desk.ask("rotate_key", old_hash, overlap="0s")

    assert not desk.key(old_hash).is_enabled


def test_the_overlap_is_a_day_unless_the_request_says() -> None:
    desk = a_desk()
    old_hash = desk.make_key()
    desk.ask("rotate_key", old_hash)

    assert desk.key(old_hash).expires_at == NOW + 24 * HOUR


def test_an_old_key_that_ends_earlier_is_not_prolonged_and_the_new_one_lives_as_long_again() -> None:
    desk = a_desk()
    old_hash = desk.make_key(expires_at="2100-01-01")
    life = desk.key(old_hash).expires_at - NOW
    later = desk.key(old_hash).expires_at - HOUR
    new_hash = desk.ask("rotate_key", old_hash, overlap="24h", at=later).body.key_hash

    assert desk.key(old_hash).expires_at == NOW + life
    assert desk.key(new_hash).expires_at == later + life


def test_a_repeated_request_makes_no_third_key() -> None:
    desk = a_desk()
    old_hash = desk.make_key()
    rotate = RotateKey(granter_of(ROOT), old_hash, "ab" * 32, "sk_", 1_000)
    first = desk.one(rotate)

    with nothing_changes(desk):
        assert desk.one(rotate, at=NOW + HOUR) == first


@pytest.mark.parametrize("overlap", ["soon", "-1s", "91d"])
def test_an_overlap_is_a_bounded_duration(overlap: str) -> None:
    desk = a_desk()
    key_hash = desk.make_key()

    with nothing_changes(desk), pytest.raises(Refusal, match="overlap"):
        desk.ask("rotate_key", key_hash, overlap=overlap)


def test_a_key_in_use_is_not_the_new_key() -> None:
    desk = a_desk()
    old_hash = desk.make_key()
    desk.make_key(key="a-key-of-my-own-making")

    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.ask("rotate_key", old_hash, key="a-key-of-my-own-making")
    assert refused.value.code == "KEY_EXISTS"


def test_nobody_gets_a_key_by_rotating_a_stronger_one() -> None:
    desk = a_desk("acme")
    key_hash = desk.make_key(role="admin")
    for by, code in ((ACME, "KEY_NOT_FOUND"), (KEY_MANAGER, "FORBIDDEN")):
        with nothing_changes(desk), pytest.raises(Refusal) as refused:
            desk.ask("rotate_key", key_hash, by=by)
        assert refused.value.code == code


def test_a_key_that_expired_long_ago_can_still_be_rotated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "EXPIRED_KEY_KEPT_MS", 0)
    desk = a_desk()
    old_hash = desk.make_key(expires_at="2100-01-01")
    after = desk.key(old_hash).expires_at + 1
    new_hash = desk.ask("rotate_key", old_hash, at=after).body.key_hash

    assert list(desk.tables.access.state.keys) == [new_hash]
    assert desk.key(new_hash).is_valid(after)
