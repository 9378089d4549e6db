"""For Starlette and FastAPI: one client for the life of the application, handed to its endpoints.

app = FastAPI(lifespan=corvo_lifespan("http://localhost:8080"))

@app.post("/signup")
async def signup(to: str, corvo: Annotated[AsyncClient, Depends(corvo_client)]) -> str:
    return (await corvo.enqueue(EnqueueBody(queue="emails.welcome", payload={"to": to}))).job_id
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from starlette.requests import HTTPConnection

from .. import DEFAULT_SERVER
from ..aio import AsyncClient

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


def corvo_lifespan(server: str = DEFAULT_SERVER, *, inside: Lifespan | None = None, **options: Any) -> Lifespan:
    """`options` are those of `AsyncClient`. `inside` is the lifespan that the application has already: it begins when
    the client is there, and what it yields stays the application's state."""

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[Any]:
        async with AsyncClient(server, **options) as client:
            app.state.corvo = client
            if inside is None:
                yield None
            else:
                async with inside(app) as state:
                    yield state

    return lifespan


def corvo_client(connection: HTTPConnection) -> AsyncClient:
    """The application's client: a dependency of FastAPI, or a call in an endpoint of Starlette."""
    client = getattr(connection.app.state, "corvo", None)
    if not isinstance(client, AsyncClient):
        raise LookupError("this application has no client: give it lifespan=corvo_lifespan(…)")
    return client
