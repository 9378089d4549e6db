"""What a look asks for, and what it makes of refusals."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from corvo.cli.screen.top.polling import REQUESTS_MAX, Away, Part, take_look
from corvo.cli.screen.top.session import Wants
from corvo.client.bodies import SearchBody
from corvo.client.http import Client
from tests.cli.answers import ID, prepare
from tests.client.playback import Playback


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(REQUESTS_MAX) as pool:
        yield pool


def test_a_look_is_one_set_of_requests_and_the_place_is_shown_first(
    playback: Playback, pool: ThreadPoolExecutor
) -> None:
    prepare(playback)
    parts: list[Part] = []

    look = take_look(Client(playback.url), Wants("jobs", SearchBody(queue="mail")), pool, parts.append)

    assert sorted(one.path for one in playback.asked) == [
        "/api/v1/cluster/status",
        "/api/v1/jobs/search",
        "/api/v1/queues",
        "/api/v1/workers",
    ]
    assert [part.jobs for part in parts] == [look.jobs] and look.jobs is not None
    assert look.status is not None and look.queues and look.workers and look.refusals == {}


def test_a_refused_part_is_a_sentence_and_the_rest_is_there(playback: Playback, pool: ThreadPoolExecutor) -> None:
    prepare(playback)
    playback.refuse("GET", f"/jobs/{ID}/why", 403, "FORBIDDEN", "the key may not read it")

    look = take_look(Client(playback.url), Wants("job", job=ID), pool, lambda part: None)

    assert look.job is not None and look.why is None
    assert look.refusals == {"why": "the key may not read it (403)"}


def test_a_status_that_may_not_be_read_is_no_loss_of_the_server(playback: Playback, pool: ThreadPoolExecutor) -> None:
    prepare(playback)
    client = Client(playback.url)
    playback.answer("GET", "/cluster/status", b"{}", 500)
    take_look(client, Wants("queues"), pool, lambda part: None)  # the prepared answer; from now on the refusal

    with pytest.raises(Away):
        take_look(client, Wants("queues"), pool, lambda part: None)
    playback.refuse("GET", "/cluster/status", 403, "FORBIDDEN", "not for this key")
    with pytest.raises(Away):
        take_look(client, Wants("queues"), pool, lambda part: None)
    look = take_look(client, Wants("queues"), pool, lambda part: None)
    assert look.status is None and look.queues and look.refusals == {"status": "not for this key (403)"}
