"""What is written from the endpoints is what they say now."""

import asyncio
import inspect
from pathlib import Path
from typing import get_type_hints

import pytest

from corvo.cli import derive, derive_client
from corvo.client.aio import AsyncClient
from corvo.client.async_methods import AsyncMethods
from corvo.client.http import Client
from corvo.client.methods import Methods
from corvo.ops import ENDPOINTS as WRITES
from corvo.queries import ENDPOINTS as READS

WRITTEN = {derive.PATH: derive.source, **{derive_client.FOLDER / name: of for name, of in derive_client.FILES.items()}}


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_the_file_is_what_the_endpoints_say(path: Path) -> None:
    assert path.read_text() == derive_client.formatted(WRITTEN[path](), path), "run make docs"


@pytest.mark.parametrize("endpoint", (*WRITES, *READS), ids=lambda endpoint: endpoint.name)
def test_every_endpoint_is_a_method_of_both_clients(endpoint) -> None:
    assert hasattr(Client, endpoint.name) and hasattr(AsyncClient, endpoint.name)


@pytest.mark.parametrize("endpoint", (*WRITES, *READS), ids=lambda endpoint: endpoint.name)
def test_the_names_and_types_of_both_clients_are_the_same(endpoint) -> None:
    one, other = (get_type_hints(getattr(kind, endpoint.name)) for kind in (Client, AsyncClient))
    if endpoint.media != "application/json":  # written by hand: an iterator, an asynchronous one
        del one["return"], other["return"]

    assert one == other


@pytest.mark.parametrize("endpoint", [e for e in WRITES if e.plan is not None], ids=lambda endpoint: endpoint.name)
def test_what_makes_ids_is_never_repeated_without_a_key(endpoint) -> None:
    source = inspect.getsource(inspect.getmodule(endpoint.plan))

    assert endpoint.repeats != "freely" or ".mint." not in source, "say `by key`: the ids of a repetition are others"


def test_the_methods_need_somebody_to_call() -> None:
    with pytest.raises(NotImplementedError):
        Methods().queues()
    with pytest.raises(NotImplementedError):
        asyncio.run(AsyncMethods().queues())
