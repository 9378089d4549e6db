"""CloseSession: a person has logged out. Who shows a session may end it; keys that are no sessions stay."""

from typing import Any, ClassVar

from corvo.endpoint import Operation
from corvo.state.tables import Tables


class CloseSession(Operation, tag=89):
    key_hash: str

    result: ClassVar[Any] = int

    def apply(self, tables: Tables) -> int:
        """The version without it."""
        access = tables.access
        key = access.state.keys.get(self.key_hash)
        if key is not None and key.is_session:
            access.drop_key(self.key_hash)
        return access.state.version
