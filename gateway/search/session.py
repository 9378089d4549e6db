"""The interface of a session on the read database: prepared statements, run on one snapshot.

Queries are written once, as SQLAlchemy statements. `sqlite.py` runs them on a file, `postgres.py` on a server. Each
ignores the hints for the other.
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
TEXTS_MAX = 512  # compiled statements, a few kilobytes each


class Prepared:
    """A statement as SQL text with separate parameters. Compiling takes longer than running, so statements that differ
    only in their values share one text per dialect. Constant statements are prepared once, at import."""

    _texts: ClassVar[dict[Any, Any]] = {}

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self._ready: dict[str, tuple[str, dict[str, Any]]] = {}
        self._cache_key: Any = None

    @property
    def key(self) -> Any:
        """The same for statements that differ only in their values."""
        return self._key.key

    @property
    def _key(self) -> Any:
        if self._cache_key is None:
            self._cache_key = self.statement._generate_cache_key()
            assert self._cache_key is not None, "the statement has no cache key"
        return self._cache_key

    def on(self, dialect: sa.Dialect) -> tuple[str, dict[str, Any]]:
        """The SQL text and its parameters."""
        known = self._ready.get(dialect.name)
        if known is None:
            known = self._ready[dialect.name] = self._made(dialect)
        return known

    def _made(self, dialect: sa.Dialect) -> tuple[str, dict[str, Any]]:
        key = self._key
        compiled = self._texts.get((dialect.name, key.key))
        if compiled is None:
            if len(self._texts) >= TEXTS_MAX:
                self._texts.clear()
            compiled = dialect.statement_compiler(dialect, self.statement, cache_key=key)
            self._texts[dialect.name, key.key] = compiled
        # The text depends on the length of a list parameter, and on every value that is rendered inline.
        if compiled.post_compile_params or compiled.literal_execute_params:
            whole = self.statement.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
            return str(whole), dict(whole.params)
        values = compiled.construct_params(extracted_parameters=key.bindparams, _check=False)
        return str(compiled.string), dict(values)


class OutOfTime(Exception):
    """A part of a query exceeded its own budget; the query may go on without it."""


class StatementRunner(Protocol):
    def rows(self, statement: Statement | Prepared, **values: Any) -> list[Any]:
        """Rows as tuples. Values are bound parameters, never part of the text; `values` bind the named ones."""


class ReadSession(StatementRunner, Protocol):
    """One thread's connection. A query is a function that takes it."""

    @property
    def is_postgresql(self) -> bool: ...

    @property
    def left_ms(self) -> float:
        """What remains of this query's budget."""

    def budget(self, budget_ms: float) -> AbstractContextManager[None]:
        """A tighter limit for an optional part of the query; raises OutOfTime."""

    def ask(self, question: "Callable[[ReadSession], T]") -> T:
        """Runs the query on one snapshot. Refuses if it takes too long or the database cannot be read."""

    def close(self) -> None: ...


def unavailable(message: str) -> Refusal:
    return Refusal("READ_DB_UNAVAILABLE", message, retry_after_ms=1000)


def too_long(budget_ms: int) -> Refusal:
    return Refusal(
        "DEADLINE_EXCEEDED", f"the search took longer than {budget_ms} ms; narrow it by queue, state or time"
    )


def along(index: str, statement: sa.Select[Any], table: sa.Table) -> sa.Select[Any]:
    """Forces SQLite to use this index. PostgreSQL chooses by its statistics."""
    return statement.select_from(table).with_hint(table, f"INDEXED BY {index}", "sqlite")


def numbers(values: Sequence[int]) -> str:
    """Many numbers as one parameter, a JSON array."""
    return json.dumps(values)


def listed(parameter: str) -> sa.Select[Any]:
    """The parameter made by `numbers`, as a column."""
    each = EachOf(sa.bindparam(parameter, "[]", type_=sa.Text)).table_valued("value", name="listed")
    return sa.select(sa.cast(each.c.value, sa.BigInteger))


class EachOf(GenericFunction[Any]):
    """The elements of a JSON array."""

    name = "each_of"
    inherit_cache = True


@compiles(EachOf, "sqlite")
def _on_sqlite(function: EachOf, compiler: Any, **options: Any) -> str:
    return f"json_each({compiler.process(function.clauses, **options)})"


@compiles(EachOf, "postgresql")
def _on_postgresql(function: EachOf, compiler: Any, **options: Any) -> str:
    return f"json_array_elements_text(CAST({compiler.process(function.clauses, **options)} AS JSON))"


class Position(GenericFunction[int]):
    """Where one text begins inside another, counted from 1; 0 if it does not. No wildcards."""

    name = "position_of"
    type = sa.Integer()
    inherit_cache = True


@compiles(Position, "sqlite")
def _position_on_sqlite(function: Position, compiler: Any, **options: Any) -> str:
    return f"instr({compiler.process(function.clauses, **options)})"


@compiles(Position, "postgresql")
def _position_on_postgresql(function: Position, compiler: Any, **options: Any) -> str:
    return f"strpos({compiler.process(function.clauses, **options)})"
