"""The pytest plugin: fixtures `corvo_server`, `corvo_inline` and `assert_enqueued`.

pytest loads it in every environment where the server is installed, so it imports the rest only for those who ask.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from corvo.testing.inline import InlineJobs
    from corvo.testing.server import CorvoTestServer


@pytest.fixture(scope="session")
def corvo_node() -> "Iterator[CorvoTestServer]":
    """One server for all tests of this process; `corvo_server` empties it."""
    from corvo.testing.server import running_server  # lazy: see above

    with running_server() as server:
        yield server


@pytest.fixture
def corvo_server(corvo_node: "CorvoTestServer") -> "Iterator[CorvoTestServer]":
    """A real server without jobs, queues and schedules: `url`, `client`, `clock`, `jobs(queue)`."""
    yield corvo_node
    corvo_node.reset()


@pytest.fixture
def corvo_inline(monkeypatch: pytest.MonkeyPatch) -> "InlineJobs":
    """`corvo_inline(app)`: tasks of the app run at once, in this process."""
    from corvo.testing.inline import InlineJobs  # lazy: see above

    return InlineJobs(monkeypatch.setattr)


@pytest.fixture
def assert_enqueued(request: pytest.FixtureRequest) -> Callable[..., list[Any]]:
    """`assert_enqueued(task, to="ada@example.org", count=1)`: jobs of this task, or queue, with these parameters were
    enqueued: so many, or at least one. Returns them. Looks where the test enqueues, inline or on the server."""
    from corvo.testing.assertions import check_enqueued  # lazy: see above

    if "corvo_inline" in request.fixturenames:
        inline: InlineJobs = request.getfixturevalue("corvo_inline")
        return lambda task, *, count=None, **given: check_enqueued(inline.of, task, count, given)
    server: CorvoTestServer = request.getfixturevalue("corvo_server")
    return lambda task, *, count=None, **given: check_enqueued(server.jobs, task, count, given)
