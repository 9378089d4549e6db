"""Text of others on the screen."""

import io

from rich.console import Console, RenderableType

from corvo.cli import show
from tests.cli.answers import a_job, a_queue, a_search_answer, a_status, a_summary, a_worker


def drawn(content: RenderableType) -> str:
    shown = io.StringIO()
    Console(file=shown, width=200, color_system=None).print(content)
    return shown.getvalue()


def test_an_escape_sequence_in_an_error_does_not_reach_the_terminal() -> None:
    shown = drawn(show.job(a_job(hostname="\x1b[2Jhost", errors=[], worker_id="w")))

    assert "\x1b" not in shown and r"w on \x1b[2Jhost" in shown


def test_square_brackets_are_text_not_style() -> None:
    assert "[red]x[/red]" in drawn(show.queues([a_queue("[red]x[/red]")]))


def test_a_long_payload_is_cut_in_a_list_and_whole_in_a_job() -> None:
    payload = {"text": "x" * 500}

    assert "x" * 100 not in drawn(show.found(a_search_answer(a_summary(payload=payload))))
    assert drawn(show.job(a_job(payload=payload))).count("x") >= 500


def test_what_a_job_does_not_have_is_not_shown() -> None:
    shown = drawn(show.job(a_job(errors=[])))

    assert "error" not in shown and "lease" not in shown and "result" not in shown


def test_fsync_off_is_said_with_its_consequence() -> None:
    assert "a power cut may lose" in drawn(show.status(a_status(fsync=False)))


def test_empty_lists_are_headings() -> None:
    assert drawn(show.queues([])).startswith("QUEUE") and drawn(show.workers([])).startswith("WORKER")


def test_a_moment_that_cannot_be_read_is_shown_as_it_is() -> None:
    assert show.when("yesterday") == "yesterday"
    assert "yesterday" in drawn(show.workers([a_worker(last_heartbeat="yesterday")]))
