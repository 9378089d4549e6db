"""CloseSession: who shows a session may end it; other keys stay."""

from corvo.ops.access.close_session import CloseSession
from corvo.ops.access.open_session import OpenSession
from tests.corvo.ops.access.test_open_session import a_desk_with_sign_on, a_session
from tests.support.machine import nothing_changes


def test_only_sessions_can_be_closed() -> None:
    desk = a_desk_with_sign_on()
    mailer = desk.make_key()
    desk.one(OpenSession(a_session()))
    with nothing_changes(desk):
        desk.one(CloseSession(mailer))
    desk.one(CloseSession(a_session().key_hash))
    assert desk.key_names == ["mailer"]
    with nothing_changes(desk):
        desk.one(CloseSession(a_session().key_hash))
