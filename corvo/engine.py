"""One entry of operations → results and changes. The same code on every replica, in tests and in the simulator.

A refusal is a result like any other. Anything else that an operation raises is a broken invariant: it is not caught,
and the replica stops before it can write what it does not understand.
"""

from typing import Any

from corvo.endpoint import Operation
from corvo.model.errors import Refusal
from corvo.rules.cascades import run_cascades
from corvo.state.tables import Changes, Tables


def apply_entry(
    tables: Tables, index: int, term: int, now: int, operations: list[Operation]
) -> tuple[list[Any], Changes]:
    """Results in the order of the operations, and what they altered together."""
    tables.begin(index, term, now)
    results = [_apply(tables, operation) for operation in operations]
    return results, tables.seal()


def _apply(tables: Tables, operation: Operation) -> Any:
    try:
        result = operation.apply(tables)
        if tables.ended or tables.errands.here:
            run_cascades(tables)
        return result
    except Refusal as refusal:
        return refusal.to_refused()
