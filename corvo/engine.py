"""Applies one entry of operations to the state: the same code on every replica, in tests and in the simulator.

A refusal is a result like any other. Anything else that an operation raises is a broken invariant: it is not caught,
and the replica stops before it can write what it does not understand.

This is the only place that runs cascades: after each operation, and after each step of a compound one.
"""

from collections.abc import Callable
from typing import Any

from corvo.endpoint import Compound, Operation, Steps
from corvo.model.errors import Refusal
from corvo.rules.cascades import run_cascades
from corvo.state.tables import Changes, Tables


def apply_entry(
    tables: Tables, index: int, term: int, now: int, operations: list[Operation]
) -> tuple[list[Any], Changes]:
    """Results in the order of the operations, and the changes of all of them."""
    tables.begin(index, term, now)
    results = [_apply(tables, operation) for operation in operations]
    return results, tables.seal()


def _apply(tables: Tables, operation: Operation) -> Any:
    try:
        if isinstance(operation, Compound):
            return _run_steps(tables, operation.steps(tables))
        return _run(tables, operation.apply)
    except Refusal as refusal:
        return refusal.to_refused()


def _run(tables: Tables, step: Callable[[Tables], Any]) -> Any:
    result = step(tables)
    if tables.ended or tables.errands.here:
        run_cascades(tables)
    return result


def _run_steps(tables: Tables, steps: Steps[Any]) -> Any:
    try:
        step = next(steps)
        while True:
            try:
                result = _run(tables, step)
            except Refusal as refusal:
                step = steps.throw(refusal)
            else:
                step = steps.send(result)
    except StopIteration as stop:
        return stop.value
