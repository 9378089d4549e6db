"""What keys do to a row."""

import msgspec
import pytest

from corvo.cli.screen.top.actions import ACTIONS, Impossible, Question, perform, possible, question_by_name, question_of
from corvo.cli.screen.top.grid import Row
from corvo.client.answers import BulkDone, BulkStarted
from corvo.client.http import Client
from tests.cli.answers import ID
from tests.client.playback import Playback

DEAD = Row(ID, (), "job", "dead")
HELD = Row(ID, (), "job", "held")
PAUSED = Row("mail", (), "queue", "paused")


def test_only_what_the_server_would_do_is_offered() -> None:
    assert [action.name for action in possible(DEAD)] == ["retry"]
    assert [action.name for action in possible(HELD)] == ["cancel", "approve", "reject"]
    assert [action.name for action in possible(PAUSED)] == ["resume"]
    assert possible(Row("w1", (), "worker")) == possible(None) == []


def test_keys_of_actions_are_upper_case() -> None:
    assert all(action.key.isupper() for action in ACTIONS)


def test_a_question_names_what_it_is_about() -> None:
    assert question_of("R", DEAD, ()).sentence == f"retry job {ID}? y/n"
    assert question_of("P", PAUSED, ()).sentence == "resume queue mail? y/n"
    assert question_of("R", PAUSED, ("a", "b")).sentence == "retry 2 jobs? y/n"


@pytest.mark.parametrize(
    ("key", "row", "sentence"),
    [
        ("R", None, "nothing here"),
        ("R", HELD, "this job is held: retry does not apply"),
        ("P", DEAD, "pause or resume is for queues: this is a job"),
        ("A", PAUSED, "approve is for jobs: this is a queue"),
    ],
)
def test_what_cannot_be_done_is_told(key: str, row: Row | None, sentence: str) -> None:
    with pytest.raises(Impossible, match=sentence):
        question_of(key, row, ())


def test_commands_name_their_target() -> None:
    assert question_by_name("pause", "mail") == Question("pause", "queue", ("mail",))
    with pytest.raises(Impossible, match="no action"):
        question_by_name("explode", "mail")


@pytest.mark.parametrize(
    ("name", "kind", "path"),
    [
        *(("retry", "job", f"/jobs/{ID}/retry"), ("cancel", "job", f"/jobs/{ID}/cancel")),
        *(("approve", "job", f"/jobs/{ID}/approve"), ("reject", "job", f"/jobs/{ID}/reject")),
        *(("pause", "queue", f"/queues/{ID}/pause"), ("resume", "queue", f"/queues/{ID}/resume")),
    ],
)
def test_an_action_is_its_endpoint(playback: Playback, name: str, kind: str, path: str) -> None:
    playback.answer("POST", path, {"status": "so"})

    assert perform(Client(playback.url), Question(name, kind, (ID,))) == f"{name} {kind} {ID}: so"


def test_marked_jobs_are_one_request(playback: Playback) -> None:
    playback.answer("POST", "/jobs/bulk", BulkDone(1, 1, 2.0, 2, error_codes={"WRONG_STATE": 1}))
    playback.answer("POST", "/jobs/bulk", BulkStarted("bulk_1", "processing", 2, "/x"), 202)
    client, question = Client(playback.url), Question("cancel", "job", ("a", "b"))

    assert perform(client, question) == "cancel: 1 jobs changed, refused: 1 WRONG_STATE"
    assert perform(client, question) == "cancel: 2 jobs, in the background as bulk_1"
    assert msgspec.json.decode(playback.asked[0].body) == {"action": "cancel", "job_ids": ["a", "b"]}
