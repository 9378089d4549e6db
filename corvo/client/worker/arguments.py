"""A call's arguments as a payload, and a payload as the arguments of a function. Pure.

The payload is an object with the names of the parameters, so programs in other languages can send and run the same
jobs. Each value is checked against its annotation: JSON types, dataclasses, msgspec structs, dates, enums; pydantic
models where pydantic is installed, which is found by its methods and never imported.
"""

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec
from msgspec import UNSET

# What the server adds to the payload of a chain's step and of a batch's callback. A function gets those that it names.
ADDED = frozenset(["previous_job_id", "previous_result", "failed_job_id", "failed_step", "error", "batch"])
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class BadArguments(ValueError):
    """The payload does not fit the function. Says what, and where."""


class Arguments:
    """The parameters of one function. If it is bound, its first parameter is the context, which no payload has."""

    def __init__(self, function: Callable[..., Any], is_bound: bool = False) -> None:
        self._name = getattr(function, "__qualname__", repr(function))
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())
        if is_bound:
            if not parameters or parameters[0].kind not in _POSITIONAL:
                raise TypeError(f"{self._name} is bound, so its first parameter must be the context")
            parameters = parameters[1:]
        for one in parameters:
            if one.kind is inspect.Parameter.VAR_POSITIONAL:
                raise TypeError(f"{self._name} has *{one.name}: a payload has names, so take a list instead")
        self._signature = signature.replace(parameters=parameters)
        named = [one for one in parameters if one.kind is not inspect.Parameter.VAR_KEYWORD]
        self._others = None if len(named) == len(parameters) else parameters[-1].name  # of **kwargs
        self._names = [one.name for one in named]
        self._required = [one.name for one in named if one.default is inspect.Parameter.empty]
        self._positional = sum(one.kind in _POSITIONAL for one in named)
        hints = _hints(function, self._name)
        try:
            shape = msgspec.defstruct(
                "Payload",
                [(name, hints.get(name, Any), msgspec.field(default=UNSET)) for name in self._names],
                forbid_unknown_fields=True,
            )
            self._decode = msgspec.json.Decoder(shape, dec_hook=_from_plain).decode
        except TypeError as error:
            raise TypeError(f"{self._name} has a parameter that no payload can hold: {error}") from None
        self._shape = shape

    def payload(self, args: tuple[Any, ...], kwargs: dict[str, Any], is_partial: bool = False) -> dict[str, Any]:
        """The payload of a call. Parameters that are not given are left out, so that a new default takes effect.
        Partial: the rest comes from the step before."""
        bind = self._signature.bind_partial if is_partial else self._signature.bind
        given = dict(bind(*args, **kwargs).arguments)
        if self._others is not None:
            given |= given.pop(self._others, {})
        return given

    def read(self, payload: bytes) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments. Raises `BadArguments`."""
        try:
            values = msgspec.structs.astuple(self._decode(payload))
        except (ValueError, RecursionError):
            return self._read_with_more(payload)
        if UNSET in values:
            return self._read_with_more(payload)
        positional = self._positional
        return values[:positional], dict(zip(self._names[positional:], values[positional:], strict=True))

    def _read_with_more(self, payload: bytes) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The slow way: a payload with gaps, with what the server added, or one that does not fit."""
        try:
            given = msgspec.json.decode(payload)
            if not isinstance(given, dict):
                raise BadArguments(f"{self._name} cannot take this payload: it is no object")
            own = {name: value for name, value in given.items() if name in self._names}
            more = {name: value for name, value in given.items() if name not in self._names}
            missing = [name for name in self._required if name not in own]
            if "previous_result" in more and missing:
                own[missing.pop(0)] = more["previous_result"]
            if missing:
                raise BadArguments(f"{self._name} cannot take this payload: {missing[0]} is missing")
            more = {name: value for name, value in more.items() if name not in ADDED}
            if more and self._others is None:
                raise BadArguments(f"{self._name} cannot take this payload: it has no parameter {min(more)}")
            found = msgspec.convert(own, self._shape, dec_hook=_from_plain)
        except BadArguments:
            raise
        except (ValueError, RecursionError) as error:  # msgspec's and pydantic's are such, too
            raise BadArguments(f"{self._name} cannot take this payload: {error}") from None
        named = {name: value for name in self._names if (value := getattr(found, name)) is not UNSET}
        positional: list[Any] = []
        for name in self._names[: self._positional]:
            if name not in named:
                break  # its default; those behind it go by name
            positional.append(named.pop(name))
        return tuple(positional), named | more


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        told = f"an annotation of {name} is not known when it runs ({error}): import it outside of TYPE_CHECKING"
        raise TypeError(told) from None


def to_json(value: Any) -> bytes:
    """What a payload, a result or a checkpoint becomes."""
    return msgspec.json.encode(value, enc_hook=_to_plain)


def _to_plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):  # a pydantic model
        return value.model_dump(mode="json")
    raise TypeError(f"a {type(value).__name__} is no JSON: give a dataclass, a struct, a model or plain values")


def _from_plain(wanted: type, value: Any) -> Any:
    if hasattr(wanted, "model_validate"):  # a pydantic model
        return wanted.model_validate(value)
    raise TypeError(f"cannot make a {wanted.__name__}")
