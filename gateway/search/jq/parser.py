"""Recursive-descent parser: one method for each rule of the grammar in docs/reference/payload-jq.md.

expression = disjunction { "|" "not" }          the pipe binds weakest, as in jq: it takes everything before it
negation   = "not" negation | comparison
comparison = "(" expression ")" | operand …     a function takes only its path: `.a | length > 5 and .b`
"""

from typing import cast

from corvo.model.limits import JQ_DEPTH_MAX, JQ_LIST_MAX
from gateway.search.jq.matching import refusal_of
from gateway.search.jq.syntax import (
    And,
    Compare,
    Condition,
    Contains,
    EndsWith,
    Has,
    In,
    Length,
    Literal,
    Matches,
    Not,
    Operator,
    Or,
    Path,
    StartsWith,
    Truth,
    Type,
    Value,
)
from gateway.search.jq.tokens import Token, mistake, shown, tokens_of

POSITION_MAX = 2**31 - 1
_CONSTANTS = {"true": True, "false": False, "null": None}
_MIRRORED: dict[Operator, Operator] = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_FUNCTIONS = ("contains", "startswith", "endswith", "test", "has", "length", "type")
_A_FUNCTION = f"{', '.join(_FUNCTIONS)} or not"


def parse(text: str) -> Condition:
    return _Parser(tokens_of(text)).whole()


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._place = 0
        self._depth = 0

    def whole(self) -> Condition:
        condition = self._expression()
        if self._now.kind != "end":
            raise self._expected('"and", "or", "| not" or the end')
        return condition

    def _expression(self) -> Condition:
        condition = self._disjunction()
        depth = self._depth
        while self._is_sign("|"):
            self._next()
            if not self._is_name("not"):
                raise self._expected('"not"; other functions are piped to a path alone')
            self._next()
            condition = Not(condition)
            self._deeper()
        self._depth = depth
        return condition

    def _disjunction(self) -> Condition:
        parts = [self._conjunction()]
        while self._is_name("or"):
            self._next()
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _conjunction(self) -> Condition:
        parts = [self._negation()]
        while self._is_name("and"):
            self._next()
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _negation(self) -> Condition:
        if not self._is_name("not"):
            return self._comparison()
        self._deeper()
        self._next()
        condition = Not(self._negation())
        self._depth -= 1
        return condition

    def _comparison(self) -> Condition:
        start = self._now
        operand = self._operand()
        if isinstance(operand, Path | Length | Type):
            return self._compared(operand)
        if operand is not None:
            return operand
        if self._is_sign("("):
            return self._parenthesised()
        literal = self._literal('a path, a value, "not" or "("')
        operator = self._operator("a comparison")
        return self._fitting(Compare(self._value("a path"), _MIRRORED[operator], literal), start)

    def _compared(self, value: Value) -> Condition:
        if self._is_name("in"):
            self._next()
            return In(value, self._list())
        if self._now.kind != "sign" or self._now.text not in _MIRRORED:
            if isinstance(value, Path):
                return Truth(value)
            raise self._expected('a comparison or "in"')
        operator = self._operator("a comparison")
        start = self._now
        if self._now.kind in ("string", "number") or self._now.text in _CONSTANTS:
            return self._fitting(Compare(value, operator, self._literal("a value")), start)
        return Compare(value, operator, self._value("a path or a value"))

    def _parenthesised(self) -> Condition:
        self._deeper()
        self._next()
        condition = self._expression()
        self._take(")", '"and", "or" or a closing ")"')
        self._depth -= 1
        return condition

    def _operand(self) -> Value | Condition | None:
        """A path with its function, or a value in parentheses; None, with no token consumed, if neither is next."""
        if self._is_path():
            return self._piped()
        if not self._is_sign("("):
            return None
        before = self._place
        self._next()
        inner = self._piped() if self._is_path() else None
        if isinstance(inner, Path | Length | Type) and self._is_sign(")"):
            self._next()
            return inner
        self._place = before
        return None

    def _value(self, what: str) -> Value:
        at = self._now
        operand = self._operand()
        if operand is None:
            raise self._expected(what)
        if not isinstance(operand, Path | Length | Type):
            raise mistake(at.column, f"expected {what}: join tests with and, or, not")
        return operand

    def _fitting(self, compare: Compare, at: Token) -> Compare:
        if compare.operator not in ("==", "!=") and at.text in _CONSTANTS:
            raise mistake(at.column, f"expected a number or a string; {at.text} has no order")
        return compare

    def _piped(self) -> Value | Condition:
        path = self._path()
        following = self._tokens[min(self._place + 1, len(self._tokens) - 1)]
        if not self._is_sign("|") or (following.kind == "name" and following.text == "not"):
            return path
        self._next()
        if self._now.kind != "name" or self._now.text not in _FUNCTIONS:
            raise self._expected(_A_FUNCTION)
        function = self._next().text
        if function == "length":
            return Length(path)
        if function == "type":
            return Type(path)
        self._take("(", f'"(" after {function}')
        condition = self._called(function, path)
        self._take(")", 'a closing ")"')
        return condition

    def _called(self, function: str, path: Path) -> Condition:
        if function == "contains":
            return Contains(path, self._literal("a value"))
        if function == "has":
            return Has(path, self._step("a key (in quotes) or a position from 0", is_from_end_allowed=False))
        if self._now.kind != "string":
            raise self._expected("a string")
        argument = self._next()
        text = str(argument.value)
        if function == "startswith":
            return StartsWith(path, text)
        if function == "endswith":
            return EndsWith(path, text)
        problem = refusal_of(text)
        if problem is not None:
            raise mistake(argument.column, f"expected a regular expression in RE2 syntax: {problem}")
        return Matches(path, text)

    def _is_path(self) -> bool:
        return self._now.kind == "field" or self._is_sign(".")

    def _path(self) -> Path:
        steps: list[str | int] = []
        if self._now.kind == "field":
            steps.append(str(self._next().value))
        else:
            self._next()
            if self._now.kind == "string":
                steps.append(str(self._next().value))
        while True:
            if self._now.kind == "field":
                steps.append(str(self._next().value))
            elif self._is_sign("["):
                self._next()
                steps.append(self._step("a key (in quotes) or a position", is_from_end_allowed=True))
                self._take("]", 'a closing "]"')
            elif self._is_sign(".") and steps:
                self._next()
                if self._now.kind == "string":
                    steps.append(str(self._next().value))
                elif not self._is_sign("["):
                    raise self._expected('a key after "."')
            else:
                return Path(tuple(steps))

    def _step(self, what: str, is_from_end_allowed: bool) -> str | int:
        token = self._now
        least = -POSITION_MAX if is_from_end_allowed else 0
        if token.kind == "string":
            return str(self._next().value)
        if token.kind != "number" or not isinstance(token.value, int):
            raise self._expected(what)
        if not least <= token.value <= POSITION_MAX:
            raise self._expected(f"{what}, between {least} and {POSITION_MAX}")
        self._next()
        return token.value

    def _list(self) -> tuple[Literal, ...]:
        self._take("[", 'a list, as in ["a", "b"]')
        options: list[Literal] = []
        if not self._is_sign("]"):
            options.append(self._literal("a value"))
            while self._is_sign(","):
                self._next()
                if len(options) == JQ_LIST_MAX:
                    raise mistake(
                        self._now.column, f"expected the end of the list: it has more than {JQ_LIST_MAX} values"
                    )
                options.append(self._literal("a value"))
        self._take("]", '"," or a closing "]"')
        return tuple(options)

    def _literal(self, what: str) -> Literal:
        token = self._now
        if token.kind in ("string", "number"):
            return Literal(self._next().value)
        if token.kind == "name" and token.text in _CONSTANTS:
            return Literal(_CONSTANTS[self._next().text])
        raise self._expected(what)

    def _operator(self, what: str) -> Operator:
        if self._now.kind != "sign" or self._now.text not in _MIRRORED:
            raise self._expected(f"{what}: {' '.join(_MIRRORED)}")
        return cast(Operator, self._next().text)

    @property
    def _now(self) -> Token:
        return self._tokens[self._place]

    def _next(self) -> Token:
        token = self._now
        self._place += 1
        return token

    def _is_sign(self, text: str) -> bool:
        return self._now.kind == "sign" and self._now.text == text

    def _is_name(self, text: str) -> bool:
        return self._now.kind == "name" and self._now.text == text

    def _take(self, sign: str, what: str) -> None:
        if not self._is_sign(sign):
            raise self._expected(what)
        self._next()

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > JQ_DEPTH_MAX:
            raise mistake(self._now.column, f"nested deeper than {JQ_DEPTH_MAX} levels")

    def _expected(self, what: str) -> Exception:
        found = "the end" if self._now.kind == "end" else shown(self._now.text)
        return mistake(self._now.column, f"expected {what}, found {found}")
