"""TouchKeys: a gateway reports which keys were used. Coarse, because it is for people who clean up."""

from typing import Any, ClassVar

import msgspec

from corvo.endpoint import Operation
from corvo.model.limits import KEY_USE_MS, KEY_USES_MAX
from corvo.state.tables import Tables


class TouchKeys(Operation, tag=83):
    key_hashes: list[str]

    result: ClassVar[Any] = int

    def apply(self, tables: Tables) -> int:
        """How many were written. A key that another gateway reported within the minute is not."""
        access, now = tables.access, tables.now
        touched = 0
        for key_hash in self.key_hashes[:KEY_USES_MAX]:
            key = access.state.keys.get(key_hash)
            if key is not None and now - key.last_used_at >= KEY_USE_MS * 1_000_000:
                access.touch_key(msgspec.structs.replace(key, last_used_at=now))
                touched += 1
        return touched
