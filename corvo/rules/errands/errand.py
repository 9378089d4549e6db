"""What one shard asks of another: an effect that must happen once, whoever dies meanwhile.

A machine never calls another. It writes an errand into its outbox, in the batch that holds the reason for it; the
leader's courier carries errands over in order; the other machine does each one once, because it remembers the number of
the last. Errands have no answer: whatever they find, they cope with it.
"""

import msgspec

from corvo.state.tables import Tables


class Errand(msgspec.Struct, array_like=True):
    def run(self, tables: Tables) -> None:
        raise NotImplementedError
