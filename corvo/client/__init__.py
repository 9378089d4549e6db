"""The client of a Corvo server: `Client` has a method for each endpoint.

What a request looks like is pure (`calls`); a synchronous driver over httpx sends it (`http`). The types of bodies and
answers, the routes and the methods are written from the server's endpoints (`corvo/cli/derive_client.py`).

It is installed in two ways: with the server, as `corvo.client`, and alone, as `corvo_client` (`sdk/python`). So modules
here import each other by relative names, and nothing of the server.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .calls import ServerRefused
    from .http import BadServer, Client, Unreachable, UntrustedServer

__version__ = "0.1.0"
__all__ = ["DEFAULT_SERVER", "BadServer", "Client", "ServerRefused", "Unreachable", "UntrustedServer", "__version__"]

DEFAULT_SERVER = "http://localhost:8080"


def __getattr__(name: str) -> Any:
    """Loads httpx and the types only for those who call a server: the command line starts in half the time."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import http  # lazy: see above

    return getattr(http, name)
