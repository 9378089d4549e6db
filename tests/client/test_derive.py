"""What is written from the endpoints is what they say now."""

from pathlib import Path

import pytest

from corvo.cli import derive, derive_client
from corvo.client.http import Client
from corvo.client.methods import Methods
from corvo.ops import ENDPOINTS as WRITES
from corvo.queries import ENDPOINTS as READS

WRITTEN = {derive.PATH: derive.source, **{derive_client.FOLDER / name: of for name, of in derive_client.FILES.items()}}


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_the_file_is_what_the_endpoints_say(path: Path) -> None:
    assert path.read_text() == derive_client.formatted(WRITTEN[path](), path), "run make docs"


@pytest.mark.parametrize("endpoint", (*WRITES, *READS), ids=lambda endpoint: endpoint.name)
def test_every_endpoint_that_answers_with_json_is_a_method(endpoint) -> None:
    assert hasattr(Client, endpoint.name) == (endpoint.media == "application/json")


def test_the_methods_need_somebody_to_call() -> None:
    with pytest.raises(NotImplementedError):
        Methods().queues()
