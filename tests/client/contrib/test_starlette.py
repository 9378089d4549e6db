"""The glue for Starlette and FastAPI, in both, against a real server."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Annotated, Any

import httpx
import pytest
from fastapi import Depends, FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from corvo.client.aio import AsyncClient
from corvo.client.bodies import EnqueueBody
from corvo.client.contrib.starlette import corvo_client, corvo_lifespan
from corvo.testing.server import CorvoTestServer

pytestmark = pytest.mark.system


async def enqueued(request: Request) -> JSONResponse:
    made = await corvo_client(request).enqueue(EnqueueBody(queue="web.starlette"))
    return JSONResponse({"id": made.job_id})


@asynccontextmanager
async def own(app: Any) -> AsyncIterator[dict[str, str]]:
    assert isinstance(app.state.corvo, AsyncClient), "the client is there first"
    yield {"own": "state"}


@asynccontextmanager
async def browsing(app: Any) -> AsyncIterator[tuple[httpx.AsyncClient, Any]]:
    """A browser of the application while it lives, and its state."""
    async with (
        app.router.lifespan_context(app) as state,
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://web") as web,
    ):
        yield web, state


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def test_an_endpoint_of_starlette_enqueues(corvo_server: CorvoTestServer) -> None:
    lifespan = corvo_lifespan(corvo_server.url, inside=own)
    app = Starlette(routes=[Route("/", enqueued, methods=["POST"])], lifespan=lifespan)

    async def test() -> None:
        async with browsing(app) as (web, state):
            assert state == {"own": "state"}
            made = [(await web.post("/")).json()["id"] for _ in range(3)]
        assert [job.id for job in corvo_server.jobs("web.starlette")] == made

    run(test())


def test_an_endpoint_of_fastapi_enqueues(corvo_server: CorvoTestServer) -> None:
    app = FastAPI(lifespan=corvo_lifespan(corvo_server.url))

    @app.post("/signup")
    async def signup(to: str, corvo: Annotated[AsyncClient, Depends(corvo_client)]) -> str:
        return (await corvo.enqueue(EnqueueBody(queue="web.fastapi", payload={"to": to}))).job_id

    async def test() -> None:
        async with browsing(app) as (web, _):
            made = (await web.post("/signup", params={"to": "ada"})).json()
        assert [(job.id, job.payload) for job in corvo_server.jobs("web.fastapi")] == [(made, {"to": "ada"})]

    run(test())


def test_an_application_without_the_lifespan_is_told() -> None:
    app = Starlette(routes=[Route("/", enqueued, methods=["POST"])])

    async def test() -> None:
        async with browsing(app) as (web, _):
            with pytest.raises(LookupError, match="corvo_lifespan"):
                await web.post("/")

    run(test())
