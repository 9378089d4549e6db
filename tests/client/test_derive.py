"""What is written from the endpoints is what they say now."""

import pytest

from corvo.cli import derive as cli_derive
from corvo.client import derive as client_derive
from corvo.client.http import Client
from corvo.client.methods import Methods
from corvo.ops import ENDPOINTS as WRITES
from corvo.queries import ENDPOINTS as READS


@pytest.mark.parametrize("derive", [client_derive, cli_derive], ids=["client", "cli"])
def test_the_file_is_what_the_endpoints_say(derive) -> None:
    assert derive.PATH.read_text() == client_derive.formatted(derive.source()), f"run python -m {derive.__name__}"


@pytest.mark.parametrize("endpoint", (*WRITES, *READS), ids=lambda endpoint: endpoint.name)
def test_every_endpoint_that_answers_with_json_is_a_method(endpoint) -> None:
    assert hasattr(Client, endpoint.name) == (endpoint.media == "application/json")


def test_the_methods_need_somebody_to_call() -> None:
    with pytest.raises(NotImplementedError):
        Methods().queues()
