"""TouchKeys: coarse, bounded, and no change of access."""

from corvo.model.limits import KEY_USE_MS, KEY_USES_MAX
from corvo.ops.access.touch_keys import TouchKeys
from tests.support.access import a_desk
from tests.support.builders import NOW
from tests.support.machine import nothing_changes

MINUTE = KEY_USE_MS * 1_000_000


def test_the_time_of_use_is_kept_at_most_once_a_minute() -> None:
    desk = a_desk()
    key_hash = desk.make_key()
    version = desk.version

    assert desk.one(TouchKeys([key_hash]), at=NOW + 1) == 1
    with nothing_changes(desk):
        assert desk.one(TouchKeys([key_hash]), at=NOW + MINUTE) == 0
    assert desk.one(TouchKeys([key_hash]), at=NOW + 1 + MINUTE) == 1

    assert (desk.key(key_hash).last_used_at, desk.version) == (NOW + 1 + MINUTE, version)
    assert desk.ask("api_keys").body[0].last_used_at is not None


def test_an_unknown_key_is_skipped_and_a_report_is_bounded() -> None:
    desk = a_desk()
    key_hash = desk.make_key()

    assert desk.one(TouchKeys([*(["0" * 64] * KEY_USES_MAX), key_hash])) == 0
