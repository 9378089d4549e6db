"""OpenSession: a person has signed on, and a browser gets a key of its own for some hours.

The issuer vouches for the person, so nobody grants this key. It holds the roles that the issuer's groups gave at that
moment, and only while the settings name that issuer.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

import msgspec

from corvo.endpoint import Operation
from corvo.model.access_records import ApiKey
from corvo.model.errors import Refusal
from corvo.model.limits import ROLES_PER_KEY_MAX, SESSIONS_PER_PERSON_MAX
from corvo.rules.access import make_room_for_key, require_active
from corvo.state.tables import Tables


class OpenSession(Operation, tag=88):
    session: ApiKey  # without its time; its roles may name some that do not exist

    result: ClassVar[Any] = int

    def apply(self, tables: Tables) -> int:
        """The version that holds it."""
        access, session = tables.access, self.session
        state = access.state
        if session.key_hash in state.keys:
            return state.version  # a repeated request
        if not session.is_session or not state.vouches_for(session):
            raise Refusal("SIGN_ON_FAILED", "the settings of sign-on were changed meanwhile; begin again")
        require_active(state, session.namespace)
        roles = tuple(role for role in session.all_roles if state.find_role(role) is not None)[: ROLES_PER_KEY_MAX + 1]
        if not roles:
            raise Refusal("FORBIDDEN", f"{session.name} has no role here")
        make_room_for_key(tables, session.namespace, _ended(state.keys.values(), session, tables.now))
        access.put_key(msgspec.structs.replace(session, role=roles[0], roles=roles[1:], created_at=tables.now))
        return access.state.version


def _ended(known: Iterable[ApiKey], session: ApiKey, now: int) -> set[str]:
    """Sessions to forget: those that are over, and the oldest of this person beyond the most that one may have."""
    sessions = [key for key in known if key.is_session]
    over = {key.key_hash for key in sessions if not key.is_valid(now)}
    own = [
        key
        for key in sessions
        if (key.issuer, key.subject) == (session.issuer, session.subject) and key.key_hash not in over
    ]
    own.sort(key=lambda key: (key.created_at, key.key_hash))
    return over | {key.key_hash for key in own[: max(len(own) - SESSIONS_PER_PERSON_MAX + 1, 0)]}
