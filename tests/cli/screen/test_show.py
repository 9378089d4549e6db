"""Text of others on the screen."""

import io

from rich.console import Console, RenderableType

from corvo.cli.screen import show, show_cluster
from corvo.cli.screen.show_status import ServerStatus, show_status
from corvo.model.incidents import Incident
from corvo.queries.cluster import ClusterStatus
from corvo.queries.job import ChainView, StepView
from tests.cli.answers import NOON, a_job, a_queue, a_search_answer, a_status, a_summary, a_worker


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


def test_what_binds_a_job_is_shown() -> None:
    chain = ChainView([StepView("mail", {}), StepView("post", {})])
    ties = {"batch_id": "b1", "chain_id": "chn_1", "chain_step": 1, "chain_config": chain, "waiting_for": ["j1", "j2"]}
    shown = drawn(show.job(a_job(**ties, hold_reason="ask Ada", unique_key="k", cancel_requested=True)))

    lines = [line.strip().split(maxsplit=1) for line in shown.splitlines()]
    assert ["batch", "b1"] in lines and ["chain", "chn_1, step 2 of 2"] in lines
    assert "ask Ada" in shown and "j2" in shown and "its worker has not stopped yet" in shown


def test_the_job_after_a_chain_is_its_end() -> None:
    assert "chn_1, its end" in drawn(show.job(a_job(chain_id="chn_1", chain_step=-2)))


def test_a_worker_shows_its_pool_and_its_version() -> None:
    shown = drawn(show.workers([a_worker(pool_size=8, version="1.2.3"), a_worker("old")]))

    assert shown.splitlines()[1].split()[-2:] == ["8", "1.2.3"]


def test_fsync_off_is_said_with_its_consequence() -> None:
    assert "a power cut may lose" in drawn(show.headline(a_status(fsync=False)))


def whole_status(cluster: ClusterStatus) -> RenderableType:
    return show_status(ServerStatus(cluster, []))


def test_the_first_line_says_how_healthy_and_why() -> None:
    away = a_status(status="degraded", reasons=["node-2 does not answer"])

    assert "healthy · single" in drawn(whole_status(a_status()))
    assert "degraded: node-2 does not answer · single" in drawn(whole_status(away))
    assert "degraded: node-2 does not answer · single" in drawn(show_cluster.status(away))


def test_restarts_and_incidents_are_shown_where_there_are_any() -> None:
    incident = Incident(NOON, "shard-1", "no heartbeat for 31 s, killed")
    hurt = a_status(restarts={"mirror": 0, "shard-1": 2}, incidents=[incident])

    for shown in (drawn(whole_status(hurt)), drawn(show_cluster.status(hurt))):
        assert "restarts since node-1 started: shard-1 2\n" in shown
        assert shown.splitlines()[-1].split(maxsplit=3)[2:] == ["shard-1", "no heartbeat for 31 s, killed"]
    assert "restarts" not in drawn(whole_status(a_status(restarts={"mirror": 0})))


def test_empty_lists_are_headings() -> None:
    assert drawn(show.queues([])).startswith("QUEUE") and drawn(show.workers([])).startswith("WORKER")


def test_a_moment_that_cannot_be_read_is_shown_as_it_is() -> None:
    assert show.when("yesterday") == "yesterday"
    assert "yesterday" in drawn(show.workers([a_worker(last_heartbeat="yesterday")]))
