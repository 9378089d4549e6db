"""The connections of a benchmark carry the credentials of its client."""

import asyncio
from typing import Any

from websockets.asyncio.server import serve

from corvo.client.answers import Enqueued
from corvo.client.bench.http_link import HttpLink
from corvo.client.bench.links import RoundTrip, Target
from corvo.client.bench.stream_link import StreamLink
from corvo.client.http import Client
from tests.client.playback import playing

JOB = RoundTrip(queues=("q",), new_jobs=(b'{"queue":"q"}',))


def target_of(url: str) -> Target:
    with Client(url, api_key="secret") as client:
        return Target(client.server, client.secure, client.credentials)


def test_http_sends_the_key() -> None:
    async def drive(url: str) -> None:
        link = await HttpLink.open(target_of(url), "w")
        assert (await link.turn(JOB)).enqueued == 1
        await link.close()

    with playing() as playback:
        playback.answer("POST", "/enqueue", Enqueued("id", "pending"), 201)
        asyncio.run(drive(playback.url))

    (headers,) = playback.headers
    assert headers["x-api-key"] == "secret" and headers["content-type"] == "application/json"


def test_the_stream_sends_the_key() -> None:
    keys = []

    async def answer(socket: Any) -> None:
        keys.append(socket.request.headers.get("x-api-key"))
        async for _ in socket:
            await socket.send(b'{"id":1,"enqueued":[{}]}', text=True)

    async def drive() -> None:
        async with serve(answer, "127.0.0.1", 0) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            link = await StreamLink.open(target_of(f"http://127.0.0.1:{port}"), "w")
            assert (await link.turn(JOB)).enqueued == 1
            await link.close()

    asyncio.run(drive())

    assert keys == ["secret"]
