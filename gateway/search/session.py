"""What every answer from a read database is made of: statements, and one reading of one moment.

Answers are written once, as SQLAlchemy statements. `sqlite.py` reads them from a file, `postgres.py` from a server;
hints for one are passed over by the other.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction

from corvo.model.errors import Refusal

T = TypeVar("T")


Statement = sa.Select[Any] | sa.CompoundSelect[Any]
TEXTS_MAX = 512  # of statements; some kilobytes each


class Prepared:
    """A statement as text, with its values beside. Turning it into text takes longer than an answer, so statements that
    differ in their values alone share one text on each database; those that are the same for every question are
    prepared once."""

    _texts: ClassVar[dict[Any, Any]] = {}

    def __init__(self, statement: Statement) -> None:
        self._statement = statement
        self._ready: dict[str, tuple[str, dict[str, Any]]] = {}

    def on(self, dialect: sa.Dialect) -> tuple[str, dict[str, Any]]:
        """The text, and its parameters."""
        known = self._ready.get(dialect.name)
        if known is None:
            known = self._ready[dialect.name] = self._made(dialect)
        return known

    def _made(self, dialect: sa.Dialect) -> tuple[str, dict[str, Any]]:
        key = self._statement._generate_cache_key()
        assert key is not None, "a statement that cannot be told from others"
        compiled = self._texts.get((dialect.name, key.key))
        if compiled is None:
            if len(self._texts) >= TEXTS_MAX:
                self._texts.clear()
            compiled = dialect.statement_compiler(dialect, self._statement, cache_key=key)
            self._texts[dialect.name, key.key] = compiled
        # A list of values: the text depends on its length. A value that must stand in the text: on itself.
        if compiled.post_compile_params or compiled.literal_execute_params:
            whole = self._statement.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
            return str(whole), dict(whole.params)
        values = compiled.construct_params(extracted_parameters=key.bindparams, _check=False)
        return str(compiled.string), dict(values)


class OutOfTime(Exception):
    """A budget inside a question is used up; the question itself may go on."""


class ReadSession(Protocol):
    """One thread's connection. Questions are functions of it."""

    @property
    def is_postgresql(self) -> bool: ...

    @property
    def left_ms(self) -> float:
        """Of the budget of this question."""

    def rows(self, statement: Statement | Prepared, **values: Any) -> list[Any]:
        """Rows as tuples. Values travel as parameters, never inside the text; `values` are those of named ones."""

    def budget(self, budget_ms: float) -> AbstractContextManager[None]:
        """A tighter limit for a part that the answer can do without: raises OutOfTime."""

    def ask(self, question: "Callable[[ReadSession], T]") -> T:
        """All that the question reads is of one moment. Refuses what takes too long or cannot be read."""

    def close(self) -> None: ...


def unavailable(message: str) -> Refusal:
    return Refusal("READ_DB_UNAVAILABLE", message, retry_after_ms=1000)


def too_long(budget_ms: int) -> Refusal:
    return Refusal(
        "DEADLINE_EXCEEDED", f"the search took longer than {budget_ms} ms; narrow it by queue, state or time"
    )


def along(index: str, statement: sa.Select[Any], table: sa.Table) -> sa.Select[Any]:
    """Read along this index, whatever SQLite thinks of it. PostgreSQL has statistics."""
    return statement.select_from(table).with_hint(table, f"INDEXED BY {index}", "sqlite")


def numbers(values: Sequence[int]) -> str:
    """Many numbers as one parameter."""
    return json.dumps(values)


def listed(parameter: str) -> sa.Select[Any]:
    """`numbers`, to be read like a column."""
    each = EachOf(sa.bindparam(parameter, "[]", type_=sa.Text)).table_valued("value", name="listed")
    return sa.select(sa.cast(each.c.value, sa.BigInteger))


class EachOf(GenericFunction[Any]):
    """The elements of an array of JSON."""

    name = "each_of"
    inherit_cache = True


@compiles(EachOf, "sqlite")
def _on_sqlite(function: EachOf, compiler: Any, **options: Any) -> str:
    return f"json_each({compiler.process(function.clauses, **options)})"


@compiles(EachOf, "postgresql")
def _on_postgresql(function: EachOf, compiler: Any, **options: Any) -> str:
    return f"json_array_elements_text(CAST({compiler.process(function.clauses, **options)} AS JSON))"


class Position(GenericFunction[int]):
    """Where a text begins inside another, from 1 on; 0: nowhere. No wildcards."""

    name = "position_of"
    type = sa.Integer()
    inherit_cache = True


@compiles(Position, "sqlite")
def _position_on_sqlite(function: Position, compiler: Any, **options: Any) -> str:
    return f"instr({compiler.process(function.clauses, **options)})"


@compiles(Position, "postgresql")
def _position_on_postgresql(function: Position, compiler: Any, **options: Any) -> str:
    return f"strpos({compiler.process(function.clauses, **options)})"
