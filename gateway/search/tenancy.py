"""What a statement on the read database may see: the rows of one namespace and, for a key with a scope, of its queues.

A list asks a `TenantDb`, which belongs to one reach. Its sessions bind the namespace to every statement and refuse to
run one that does not use it: for each table with a column `namespace`, the statement must select `of_tenant(table)`, or
compare an id or a queue with those of rows that it has selected so. The check looks at the statement, not at its rows,
and runs once for each text. So a list that forgets its namespace fails the first time that anybody asks it, whatever
the data, and shows nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import AsBoolean, BinaryExpression, BooleanClauseList, Grouping
from sqlalchemy.sql.functions import GenericFunction

from corvo.model.errors import Refusal
from corvo.model.globs import to_regex, to_sqlite
from corvo.model.namespaces import qualify, shown_name
from corvo.model.reach import Reach
from gateway.search.session import TEXTS_MAX, Prepared, ReadSession, Statement

if TYPE_CHECKING:
    from gateway.search.database import ReadDb

T = TypeVar("T")
Condition = sa.ColumnElement[bool]

TENANT = sa.bindparam("tenant", "", type_=sa.Text)
OWN_QUEUE = sa.bindparam("own_queue", "", type_=sa.Text)  # the queue that the request names; its name has its namespace

# Equal values in these columns mean the same tenant, because names and ids carry their namespace.
_LINKS = (frozenset({"id", "job_id"}), frozenset({"seq"}), frozenset({"doc"}), frozenset({"queue", "name"}))
_QUEUE = {"jobs": "queue", "job_errors": "queue", "queues": "name", "queue_minutes": "queue"}


class Unconfined(Exception):
    """A statement could read the rows of other tenants. A bug: it is not run."""


def of_tenant(table: sa.FromClause) -> Condition:
    found: Condition = table.c.namespace == TENANT
    return found


def of_queue(column: sa.ColumnElement[Any]) -> Condition:
    """The queue that the request names. It has its namespace in it, so an index by queue needs no further column."""
    found: Condition = column == OWN_QUEUE
    return found


def in_scope(column: sa.ColumnElement[Any], reach: Reach) -> list[Condition]:
    """Empty without a scope: every queue of the namespace."""
    if not reach.scope:
        return []
    before = qualify(reach.namespace, "")
    globs = [(to_sqlite(glob), to_regex(glob)) for glob in reach.scope]
    within = [
        MatchesGlob(column, sa.literal(before + glob), sa.literal("^" + before.replace("|", "[|]") + regex[1:]))
        for glob, regex in globs
        if glob is not None and regex is not None
    ]
    # A glob that no name matches: an empty condition would be optimised away together with the namespace.
    return [sa.or_(*within) if within else MatchesGlob(column, sa.literal(""), sa.literal("^$"))]


class MatchesGlob(GenericFunction[bool]):
    """A column, then the same glob in the notation of SQLite and of PostgreSQL."""

    name = "matches_glob"
    type = sa.Boolean()
    inherit_cache = True


@compiles(MatchesGlob, "sqlite")
def _glob_on_sqlite(function: MatchesGlob, compiler: Any, **options: Any) -> str:
    column, glob, _ = function.clauses
    return f"({compiler.process(column, **options)} GLOB {compiler.process(glob, **options)})"


@compiles(MatchesGlob, "postgresql")
def _glob_on_postgresql(function: MatchesGlob, compiler: Any, **options: Any) -> str:
    column, _, regex = function.clauses
    return f"({compiler.process(column, **options)} ~ {compiler.process(regex, **options)})"


class TenantDb:
    """The read database within one reach."""

    def __init__(self, read_db: "ReadDb", reach: Reach) -> None:
        self._read_db = read_db
        self.reach = reach
        self.is_postgresql = read_db.is_postgresql

    async def ask(self, question: "Callable[[TenantSession], T]", queue: str | None = None) -> T:
        """`queue`: what `OWN_QUEUE` stands for."""
        if queue is not None and not self.reach.holds(queue):
            raise Refusal("FORBIDDEN", f"the queue {shown_name(queue)[:200]!r} is outside the scope of this key")
        return await self._read_db.ask(lambda session: question(TenantSession(session, self.reach, queue)))


class TenantSession:
    """A session of `ReadDb` for the statements of one tenant."""

    def __init__(self, session: ReadSession, reach: Reach, queue: str | None = None) -> None:
        self._session = session
        self._values = {"tenant": reach.namespace, "own_queue": queue}
        self.reach = reach

    @property
    def is_postgresql(self) -> bool:
        return self._session.is_postgresql

    @property
    def left_ms(self) -> float:
        return self._session.left_ms

    def rows(self, statement: Statement | Prepared, **values: Any) -> list[Any]:
        prepared = statement if isinstance(statement, Prepared) else Prepared(statement)
        _require_confined(prepared, bool(self.reach.scope))
        return self._session.rows(prepared, **values, **self._values)

    def budget(self, budget_ms: float) -> AbstractContextManager[None]:
        return self._session.budget(budget_ms)


_confined: set[Any] = set()  # keys of statements that were checked


def _require_confined(prepared: Prepared, has_scope: bool) -> None:
    key = (prepared.key, has_scope)
    if key in _confined:
        return
    check(prepared.statement, has_scope)
    if len(_confined) >= TEXTS_MAX:
        _confined.clear()
    _confined.add(key)


def check(statement: Statement, has_scope: bool = False) -> None:
    """Raise Unconfined unless every row that the statement reads belongs to the tenant and to its scope."""
    _check(statement, _is_of_tenant, frozenset())
    if has_scope:
        _check(statement, _is_of_queues, frozenset())


Confines = Callable[[sa.FromClause, list[Any]], bool]


def _check(statement: Any, confines: Confines, outer: frozenset[Any]) -> None:
    if isinstance(statement, sa.CompoundSelect):
        for select in statement.selects:
            _check(select, confines, outer)
        return
    assert isinstance(statement, sa.Select), f"cannot check {type(statement).__name__}"
    where = list(_conjuncts(statement.whereclause))
    links = list(where)
    leaves: list[Any] = []
    for source in statement.get_final_froms():
        _take_apart(source, leaves, links)
    confined = set(outer)
    for leaf in leaves:
        if isinstance(leaf, sa.Subquery | sa.CTE):
            _check(leaf.element, confines, frozenset())
            confined.add(leaf)
        elif confines(leaf, where):
            confined.add(leaf)
    _spread(confined, links)
    for leaf in leaves:
        if leaf not in confined and _has_tenants(leaf):
            raise Unconfined(f"a statement reads {_table(leaf).name} without its namespace or scope: {statement}")
    for inner in _inner(statement):
        _check(inner, confines, frozenset(confined))


def _take_apart(source: Any, leaves: list[Any], links: list[Any]) -> None:
    if isinstance(source, sa.Join):
        _take_apart(source.left, leaves, links)
        _take_apart(source.right, leaves, links)
        links += _conjuncts(source.onclause)
    else:
        leaves.append(source)


def _conjuncts(clause: Any) -> Iterator[Any]:
    if isinstance(clause, Grouping):
        yield from _conjuncts(clause.element)
    elif isinstance(clause, BooleanClauseList) and clause.operator is operators.and_:
        for one in clause.clauses:
            yield from _conjuncts(one)
    elif clause is not None:
        yield clause


def _spread(confined: set[Any], links: list[Any]) -> None:
    """Rows that are linked to confined ones by an id or a queue are confined too."""
    pairs = [
        (one.left, one.right)
        for one in links
        if isinstance(one, BinaryExpression)
        and one.operator is operators.eq
        and any({_name(one.left), _name(one.right)} <= same for same in _LINKS)
    ]
    is_growing = True
    while is_growing:
        before = len(confined)
        for left, right in pairs:
            if left.table in confined or right.table in confined:
                confined |= {left.table, right.table}
        is_growing = len(confined) > before


def _name(side: Any) -> str:
    return side.name if isinstance(side, sa.ColumnClause) and side.table is not None else ""


def _has_tenants(leaf: Any) -> bool:
    return isinstance(_table(leaf), sa.Table) and "namespace" in _table(leaf).c


def _table(leaf: Any) -> Any:
    return leaf.element if isinstance(leaf, sa.Alias) else leaf


def _is_of_tenant(leaf: sa.FromClause, where: list[Any]) -> bool:
    return any(_compares(one, leaf, "namespace", "tenant") for one in where) or _is_own_queue(leaf, where)


def _is_of_queues(leaf: Any, where: list[Any]) -> bool:
    """Tables without a queue are compared with the scope by those who read them."""
    if not _has_tenants(leaf) or _table(leaf).name not in _QUEUE:
        return True
    return _is_own_queue(leaf, where) or any(_is_within_scope(one, leaf) for one in where)


def _is_own_queue(leaf: Any, where: list[Any]) -> bool:
    column = _QUEUE.get(_table(leaf).name, "") if _has_tenants(leaf) else ""
    return column != "" and any(_compares(one, leaf, column, "own_queue") for one in where)


def _compares(one: Any, leaf: Any, column: str, parameter: str) -> bool:
    return (
        isinstance(one, BinaryExpression)
        and one.operator is operators.eq
        and _name(one.left) == column
        and one.left.table is leaf
        and isinstance(one.right, sa.BindParameter)
        and one.right.key == parameter
    )


def _is_within_scope(one: Any, leaf: Any) -> bool:
    while isinstance(one, Grouping | AsBoolean):
        one = one.element
    if isinstance(one, BooleanClauseList):
        return one.operator is operators.or_ and all(_is_within_scope(each, leaf) for each in one.clauses)
    if not isinstance(one, MatchesGlob):
        return False
    column = next(iter(one.clauses))
    return column.table is leaf and column.name == _QUEUE[_table(leaf).name]


def _inner(statement: Any) -> Iterator[Any]:
    """The selects inside its columns and conditions. Those that it selects from are checked on their own."""
    waiting = [part for part in statement.get_children() if not isinstance(part, sa.FromClause)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, sa.Select | sa.CompoundSelect):
            yield part
        elif not isinstance(part, sa.FromClause):
            waiting += part.get_children()
