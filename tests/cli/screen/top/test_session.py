"""What keys do: where the person is after them, and what is asked of whom."""

import pytest

from corvo.cli.screen.top.actions import MARKS_MAX, Question
from corvo.cli.screen.top.commands import BadCommand, run_command
from corvo.cli.screen.top.filters import BadFilter
from corvo.cli.screen.top.looks import Past
from corvo.cli.screen.top.session import Session
from corvo.client.bodies import SearchBody
from tests.cli.answers import ID, NOON_NS, a_job, a_look, a_queue, a_search_answer, a_summary, a_worker

QUEUES = [a_queue("mail", pending=3), a_queue("sms", pending=2), a_queue("bill", pending=1, status="paused")]
JOBS = a_search_answer(*(a_summary(id=f"job-{number}") for number in range(5)))
LOOK = a_look(queues=QUEUES, workers=[a_worker()], jobs=JOBS)


def a_session(*keys: str, look: object = LOOK, **flags: bool) -> Session:
    session = Session(clock_ns=lambda: NOON_NS, **flags)
    play(session, *keys)
    return session


def play(session: Session, *keys: str) -> None:
    for key in keys:
        session.arrange(Past(None, LOOK))
        session.press(key)
    session.arrange(Past(None, LOOK))


def test_numbers_and_tab_go_through_the_panes() -> None:
    assert [a_session(str(number)).place.name for number in range(1, 9)] == [
        "queues", "running", "workers", "failures", "held", "shards", "errors", "jobs",
    ]  # fmt: skip
    assert a_session("tab").place.name == "running"
    assert a_session("shift+tab").place.name == "jobs"


def test_enter_goes_deeper_and_escape_back() -> None:
    session = a_session("down", "enter", "enter")

    assert session.trail() == "queues > jobs queue=sms > job job-0"
    assert session.wants().job == "job-0"
    play(session, "escape", "escape")
    assert session.trail() == "queues"
    assert session.row is not None and session.row.key == "sms", "the cursor is where it was"


def test_a_worker_opens_its_running_jobs_and_a_shard_its_replicas() -> None:
    assert a_session("3", "enter").trail() == "workers > running worker_id=w1"
    assert a_session("6", "down", "enter").trail() == "shards > shard 1"


def test_the_cursor_follows_its_row_and_stays_at_the_top_when_it_was_not_moved() -> None:
    newer = a_look(jobs=a_search_answer(a_summary(id="new"), *JOBS.jobs))
    moved, still = a_session("8", "down"), a_session("8")

    for session, key in ((moved, "job-1"), (still, "new")):
        session.arrange(Past(None, newer))
        assert session.row is not None and session.row.key == key
    moved.arrange(Past(None, a_look(jobs=a_search_answer(a_summary(id="only")))))
    assert moved.row is not None and moved.row.key == "only", "its row is gone"
    moved.arrange(Past(None, a_look(jobs=a_search_answer())))
    assert moved.row is None


def test_keys_move_within_the_rows() -> None:
    for keys, index in (("j", 1), ("jjjjjjj", 4), ("jk", 0), ("k", 0), ("G", 4), ("Gg", 0)):
        assert a_session("8", *keys).place.index == index
    session = a_session("8")
    assert list(session.window(2, 5)) == [0, 1]
    play(session, "pagedown")
    assert list(session.window(2, 5)) == [1, 2]
    session.point_at(0)
    assert session.place.index == 1
    assert list(session.window(9, 5)) == [0, 1, 2, 3, 4], "a larger screen shows all"


def test_an_action_is_asked_and_only_y_does_it() -> None:
    session = a_session("P")
    assert session.question == Question("pause", "queue", ("mail",))
    play(session, "n")
    assert (session.question, session.confirmed, session.message) == (None, None, "nothing was changed")
    play(session, "P", "y")
    assert session.confirmed == Question("pause", "queue", ("mail",))


def test_the_target_is_the_row_of_the_moment_of_the_key() -> None:
    session = a_session("P")
    session.arrange(Past(None, a_look(queues=[a_queue("another", pending=9), *QUEUES])))
    session.press("y")

    assert session.confirmed is not None and session.confirmed.targets == ("mail",)


def test_read_only_asks_nothing() -> None:
    session = a_session("P", is_read_only=True)

    assert session.question is None and "read-only" in session.message
    run_command(session, "pause mail")
    assert session.question is None
    play(session, "8", "R")
    assert session.question is None


def test_marked_jobs_are_acted_on_together() -> None:
    session = a_session("8", "space", "space", "R")

    assert session.question == Question("retry", "job", ("job-0", "job-1"))
    play(session, "n", "g", "space", "R")
    assert session.question == Question("retry", "job", ("job-1",))
    play(session, "n", "U")
    assert not session.marked
    session.marked = {str(number): None for number in range(MARKS_MAX)}
    play(session, "g", "space")
    assert len(session.marked) == MARKS_MAX and "corvo bulk" in session.message
    assert a_session("space").message == "only jobs are marked"


def test_a_filter_of_jobs_is_the_servers() -> None:
    session = a_session("4")
    session.set_filter("queue=mail error_contains=timeout")

    wanted = SearchBody(
        queue="mail", error_contains="timeout", state=["dead", "retrying"], sort="started_at", limit=200
    )
    assert session.wants().search == wanted
    with pytest.raises(BadFilter):
        session.set_filter("color=red")
    assert session.place.filter.startswith("queue=mail")
    play(session, "escape")
    assert session.place.filter == ""


def test_a_filter_of_queues_is_by_words() -> None:
    session = a_session()
    session.set_filter("SMS")
    session.arrange(Past(None, LOOK))

    assert [row.key for row in session.rows] == ["sms"]
    assert session.wants().search is None


def test_columns_sort_here_or_at_the_server() -> None:
    session = a_session("greater_than_sign")
    assert (session.place.sort, [row.key for row in session.rows]) == ("QUEUE", ["bill", "mail", "sms"])
    play(session, "s")
    assert [row.key for row in session.rows] == ["sms", "mail", "bill"]
    play(session, "S")
    assert [row.key for row in session.rows] == ["mail", "sms", "bill"], "the most unfinished jobs first"
    assert "choose a column" in a_session("s").message

    session = a_session("8")
    session.set_sort("try")
    play(session, "s")
    search = session.wants().search
    assert search is not None and (search.sort, search.order) == ("attempt", "desc")
    assert [row.key for row in session.rows] == [job.id for job in JOBS.jobs], "as the server ordered them"
    with pytest.raises(BadFilter, match="columns are STATE"):
        session.set_sort("colour")


def test_keys_change_the_interval() -> None:
    session = a_session()
    for key, interval in (("plus", 2.0), ("equals_sign", 5.0), ("minus", 2.0), *[("minus", 0.2)] * 0, ("minus", 1.0)):
        session.press(key)
        assert session.interval_s == interval
    play(session, *["minus"] * 9)
    assert session.interval_s == 0.2
    play(session, *["plus"] * 19)
    assert session.interval_s == 60.0


def test_freezing_asks_nothing_and_thawing_asks_at_once() -> None:
    session = a_session()
    session.is_due = False
    session.press("p")
    assert (session.is_frozen, session.is_due) == (True, False)
    session.press("p")
    assert (session.is_frozen, session.is_due) == (False, True)


def test_a_job_page_has_a_row_to_act_on() -> None:
    session = a_session("8", "enter")
    session.arrange(Past(None, a_look(job=a_job(id="job-0", state="dead"))))
    session.press("R")

    assert session.question == Question("retry", "job", ("job-0",))


def test_q_and_ctrl_c_leave() -> None:
    assert a_session("q").is_over and a_session("ctrl+c").is_over
    assert not a_session("x", "Q", "f5").is_over


@pytest.mark.parametrize(
    ("text", "trail"),
    [
        ("failures", "failures"),
        ("fail", "failures"),
        ("failures queue=mail", "failures queue=mail"),
        (f"job {ID}", f"queues > job {ID}"),
        ("queue mail", "queues > jobs queue=mail"),
        ("worker w1", "queues > running worker_id=w1"),
        ("filter mail", "queues mail"),
        ("help", "queues > help"),
        ("", "queues"),
    ],
)
def test_commands_go_places(text: str, trail: str) -> None:
    session = a_session()
    run_command(session, text)

    assert session.trail() == trail


def test_commands_act_and_set() -> None:
    session = a_session()
    run_command(session, f"cancel {ID}")
    assert session.question == Question("cancel", "job", (ID,))
    run_command(session, "interval 2.5")
    assert session.interval_s == 2.5
    run_command(session, "interval 1e9")
    assert session.interval_s == 60.0
    run_command(session, "sort dead")
    assert session.place.sort == "DEAD"
    for word in ("q", "quit", "q!"):
        session.is_over = False
        run_command(session, word)
        assert session.is_over


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("explode", "there is no command 'explode'"),
        ("cancel", ":cancel needs what it is for"),
        ("interval soon", "'soon' is no number of seconds"),
        ("interval nan", "'nan' is no number of seconds"),
        ("interval -1", "'-1' is no number of seconds"),
        ("failures color=red", "there is no filter 'color'"),
        ("sort colour", "there is no column 'colour'"),
    ],
)
def test_wrong_commands_are_told(text: str, sentence: str) -> None:
    session = a_session()
    with pytest.raises(BadCommand, match=sentence):
        run_command(session, text)
    session.wants()
