"""An errand: an effect on another shard that happens exactly once, across crashes.

A state machine never calls another one. It writes an errand into its outbox, in the same entry as the cause. The
leader's courier delivers errands in order; the other shard runs each one once, because it stores the number of the
last. Errands have no answer and must handle every state that they find.
"""

import msgspec

from corvo.state.tables import Tables


class Errand(msgspec.Struct, array_like=True):
    def run(self, tables: Tables) -> None:
        raise NotImplementedError
