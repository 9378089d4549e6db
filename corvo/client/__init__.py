"""The client of a Corvo server: `Client` has a method for each endpoint.

`AsyncClient` has the same, to await. What a request looks like (`calls`), how often it is sent (`attempts`) and what a
stream of events says (`sse`) are pure; drivers over httpx send it (`http`, `aio`). The types of bodies and answers, the
routes, the methods and an exception for each code are written from the server's endpoints
(`corvo/cli/derive_client.py`).

It is installed in two ways: with the server, as `corvo.client`, and alone, as `corvo_client` (`sdk/python`). So modules
here import each other by relative names, and nothing of the server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .aio import AsyncClient
    from .errors import (
        BadServer,
        Conflict,
        CorvoError,
        Forbidden,
        InvalidRequest,
        NotFound,
        ServerRefused,
        TooManyRequests,
        Unauthorized,
        Unavailable,
        Unreachable,
        UntrustedServer,
    )
    from .http import Client
    from .refusals import JobNotFound, LeaseLost, Overloaded, RateLimited, UniqueConflict, WrongState

__version__ = "0.1.0"
__all__ = [
    "DEFAULT_SERVER",
    "AsyncClient",
    "BadServer",
    "Client",
    "Conflict",
    "CorvoError",
    "Forbidden",
    "InvalidRequest",
    "JobNotFound",
    "LeaseLost",
    "NotFound",
    "Overloaded",
    "RateLimited",
    "ServerRefused",
    "TooManyRequests",
    "Unauthorized",
    "Unavailable",
    "UniqueConflict",
    "Unreachable",
    "UntrustedServer",
    "WrongState",
    "__version__",
]

_HOMES = {
    "AsyncClient": "aio",
    "Client": "http",
    "JobNotFound": "refusals",
    "LeaseLost": "refusals",
    "Overloaded": "refusals",
    "RateLimited": "refusals",
    "UniqueConflict": "refusals",
    "WrongState": "refusals",
}  # of all others: errors
DEFAULT_SERVER = "http://localhost:8080"


def __getattr__(name: str) -> Any:
    """Loads httpx and the types only for those who call a server: the command line starts in half the time."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES.get(name, 'errors')}", __name__), name)
