"""Names inside requests are found by their types."""

from typing import Annotated, get_type_hints

import msgspec
import pytest

from corvo.endpoint import Body, Endpoint
from corvo.model.errors import Refusal
from corvo.model.job import QueueName, WorkerId
from corvo.model.name_fields import NameKind, qualify_names, queues_in, refuse_separator
from corvo.ops.jobs.enqueue import EnqueueBody
from corvo.ops.jobs.fetch import FetchBody
from corvo.queries.events import EventsQuery
from corvo.queries.search import SearchBody
from gateway.app import ENDPOINTS


class Step(Body):
    queue: QueueName


class Everything(Body):
    queue: QueueName
    maybe: QueueName | None = None
    many: list[QueueName] = []
    weights: dict[QueueName, int] = {}
    steps: list[Step] = []
    step: Step | None = None
    worker: WorkerId = "w"
    listed: Annotated[str, NameKind.QUEUES] = ""
    text: str = "plain"


def test_every_name_is_qualified_wherever_it_stands() -> None:
    body = Everything("a", "b", ["c", "d"], {"e": 1}, [Step("f")], Step("g"), "w1", "h,i")

    qualify_names(body, "acme")

    assert body == Everything(
        "acme|a",
        "acme|b",
        ["acme|c", "acme|d"],
        {"acme|e": 1},
        [Step("acme|f")],
        Step("acme|g"),
        "acme|w1",
        "acme|h,acme|i",
    )


def test_the_queues_of_a_body_are_listed_and_nothing_else() -> None:
    body = Everything("a", None, ["c"], {"e": 1}, [Step("f")], None, "w1", "h,i")

    assert list(queues_in(body)) == ["a", "c", "e", "f", "h", "i"]


def test_names_of_a_chain_and_of_a_fetch_are_qualified() -> None:
    enqueue = msgspec.json.decode(
        b'{"queue":"a","chain":{"steps":[{"queue":"b"}],"on_failure":{"queue":"c"},"on_exit":{"queue":"d"}}}',
        type=EnqueueBody,
    )
    fetch = msgspec.json.decode(b'{"queues":["a","b"],"worker_id":"w","weights":{"a":1,"b":2}}', type=FetchBody)

    qualify_names(enqueue, "acme")
    qualify_names(fetch, "acme")

    assert list(queues_in(enqueue)) == ["acme|a", "acme|b", "acme|c", "acme|d"]
    assert (fetch.queues, fetch.worker_id) == (["acme|a", "acme|b"], "acme|w")
    assert dict(fetch.weights or {}) == {"acme|a": 1, "acme|b": 2}


def test_an_unset_field_stays_unset() -> None:
    body = SearchBody()

    qualify_names(body, "acme")

    assert body == SearchBody()


NO_NAMES = {"max_queues", "queue_scope"}  # a number; globs, which are compared with names as their tenant knows them


@pytest.mark.parametrize("endpoint", [e for e in ENDPOINTS if e.body or e.query], ids=lambda endpoint: endpoint.name)
def test_no_field_of_an_endpoint_is_called_queue_without_being_found(endpoint: Endpoint) -> None:
    for kind in filter(None, (endpoint.body, endpoint.query)):
        for name, hint in get_type_hints(kind, include_extras=True).items():
            if "queue" in name and name not in NO_NAMES and hint not in (int, float, bool):
                assert "NameKind" in repr(hint), f"{kind.__name__}.{name}: give it a type of names (QueueName)"


def test_a_list_of_queues_in_an_address_takes_no_separator() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"queues": "acme|a"}, EventsQuery)


def test_a_separator_in_a_path_is_refused() -> None:
    refuse_separator("a.b", "name")
    with pytest.raises(Refusal, match=r"contains '\|'"):
        refuse_separator("acme|a", "name")
