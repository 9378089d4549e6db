"""The lines of a screen from looks: what they say, and that they fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from corvo.cli.screen.top.commands import run_command
from corvo.cli.screen.top.detail import HELP
from corvo.cli.screen.top.header import Link, leaders, ranges
from corvo.cli.screen.top.looks import Look, Past
from corvo.cli.screen.top.picture import picture, snapshot
from corvo.cli.screen.top.session import Place, Session
from corvo.client.answers import AttemptView, ErrorGroup, ErrorGroupsAnswer, WhyView
from corvo.model.incidents import Incident
from tests.cli.answers import (
    ID,
    NOON,
    NOON_NS,
    a_cluster,
    a_job,
    a_look,
    a_queue,
    a_replica,
    a_search_answer,
    a_shard,
    a_status,
    a_summary,
    a_worker,
)

LINK = Link(1.0)
SIZES = [(80, 24), (120, 40), (200, 60)]
GROUP = ErrorGroup("f", "mail", "boom <number>", 12_000, NOON, NOON, "boom 1", ID)
FULL = a_look(
    2.0,
    status=a_status(
        64,
        status="degraded",
        reasons=["node-2 does not answer"] * 9,
        restarts={f"shard-{number}": 3 for number in range(64)},
        incidents=[Incident(NOON, "shard-1", "x" * 300)],
    ),
    queues=[a_queue(f"{'q' * 190}-{number}", pending=10**9, completed=10**12) for number in range(300)],
    workers=[a_worker("w" * 200 + str(number), hostname="h" * 200, queues=["q" * 99] * 9) for number in range(300)],
    jobs=a_search_answer(*(a_summary(id=f"{ID}{n}", last_error="é中\x1b[31m" * 99, state="dead") for n in range(200))),
    errors=ErrorGroupsAnswer([GROUP] * 100, True, 1.0),
    job=a_job(payload={"x": "y" * 5000, "list": list(range(500))}, worker_id="w" * 99),
    why=WhyView(ID, "mail", "dead", "DEAD", "it died " * 99),
    refusals={"workers": "no " * 200},
)


def drawn(
    session: Session, look: Look, size: tuple[int, int] = (80, 24), link: Link = LINK, before: Look | None = None
) -> list[str]:
    past = Past(None, look) if before is None else Past(None, before).then(look)
    session.arrange(past)
    return [line.plain.rstrip() for line in picture(session, past, link, size)]


def at(command: str = "") -> Session:
    session = Session(clock_ns=lambda: NOON_NS)
    run_command(session, command)
    return session


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "command",
    ["queues", "running", "workers", "failures", "held", "shards", "errors", "jobs", f"job {ID}", "help"],
)
def test_every_screen_has_the_size_of_the_terminal(size: tuple[int, int], command: str) -> None:
    lines = drawn(at(command), FULL, size, Link(1.0, True, True, "nothing answers " * 30, 7.0, 2.0))

    assert len(lines) == size[1]
    assert max(map(cell_len, lines)) <= size[0]
    assert all(char.isprintable() for line in lines for char in line)
    assert "every 1 s" in lines[0] and "STALE 7 s" in lines[0] and "FROZEN" in lines[0]


@given(st.integers(1, 250), st.integers(1, 80), st.booleans(), st.sampled_from(["queues", "shards", "jobs", "help"]))
def test_no_size_breaks_it(width: int, height: int, is_away: bool, command: str) -> None:
    lines = drawn(at(command), FULL, (width, height), Link(1.0, trouble="away" if is_away else ""))

    assert len(lines) == max(height, 10) and max(map(cell_len, lines)) <= max(width, 40)


def test_queues_with_their_rates() -> None:
    before = a_look(1.0, queues=[a_queue(enqueued=0)])
    after = a_look(2.0, queues=[a_queue(pending=12_345, active=6, enqueued=420, completed_total=77, dead=3)])

    lines = drawn(at(), after, before=before)

    heading = "QUEUE STATUS PEND ACTIVE RETRY HELD DEAD ENQ/S DONE/S FAIL/S OLDEST"
    assert " ".join(lines[8].split()) == heading
    assert lines[9].split() == ["mail", "active", "12.3k", "6", "0", "0", "3", "420", "77", "0"]
    assert lines[2] == "jobs  pending 12.3k · active 6 · dead 3 · retrying 0 · held 0 · scheduled 0", "whole parts only"
    assert lines[3].split() == ["enqueued/s", "420", "█"]
    assert lines[6].startswith("1 queues  2 running") and lines[7].endswith("1/1")
    assert lines[-1].startswith("P pause · Enter open")


def test_health_names_the_node_or_the_shards_and_the_leaders() -> None:
    healthy = drawn(at(), a_look())
    assert healthy[0].startswith("● healthy · Corvo 0.1.0 · single · node-1 · 4 shards · fsync on")
    assert healthy[1] == "leaders  node-1 0-3 · read.db 4 ms · lag 0 · term 3"

    degraded = drawn(at(), a_look(status=a_status(status="degraded", reasons=["node-2 does not answer", "x"])))
    assert degraded[0].startswith("▲ degraded") and degraded[1] == "  node-2 does not answer (and 1 more)"

    groups = [
        a_shard(0),
        a_shard(1, error="no answer"),
        a_shard(2, leader_id=""),
        a_shard(3, leader_id="node-2", term=9),
    ]
    sick = a_status(status="unavailable", groups=groups, reasons=["shards 1-2: no leader"], mirror=None)
    lines = drawn(at("shards"), a_look(status=sick))
    assert lines[0].startswith("✖ unavailable")
    assert lines[2].startswith("leaders  node-1 0 · node-2 3 · none 1-2 · read.db away · lag 0 · terms 3-9")
    assert any("no answer" in line for line in lines[9:]) and any("✖ none" in line for line in lines[9:])


def test_ranges_of_shards_are_short() -> None:
    assert ranges([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"
    assert leaders([]) == []


def test_restarts_and_the_last_incident_are_a_line() -> None:
    incidents = [Incident(NOON, "mirror", "exit status 1"), Incident(NOON, "shard-1", "terminated by SIGKILL")]
    hurt = a_look(status=a_status(restarts={"mirror": 1, "shard-0": 0, "shard-1": 2}, incidents=incidents))

    assert drawn(at(), hurt)[1] == "  restarts: mirror 1, shard-1 2 · last 0s ago: shard-1, terminated by SIGKILL"


def test_a_refusal_is_a_sentence_not_an_end() -> None:
    denied = a_look(status=None, queues=None, workers=None, refusals={"queues": "no (403)", "workers": "no (403)"})

    lines = drawn(at(), denied)

    assert lines[0].startswith("? health is not known") and lines[1] == "  queues, workers: no (403)"
    assert lines[2:4] == ["leaders ?", "jobs ?"]
    assert "no (403)" in lines[9:]


def test_an_old_look_says_so_and_when_the_next_one_is_tried() -> None:
    lines = drawn(at(), a_look(), link=Link(1.0, trouble="nothing answers", age_s=7.2, retry_in_s=2.4))

    assert "STALE 7 s" in lines[0] and lines[1] == "  trying again in 2 s: nothing answers"
    first = [line.plain for line in picture(at(), None, Link(1.0, trouble="nothing answers", retry_in_s=1.0), (80, 24))]
    assert first[:2] == ["  nothing answers", "trying again in 1 s, q quits"]


def test_in_a_cluster_every_shard_shows_how_far_its_followers_are_behind() -> None:
    away = a_replica("node-3", lag=None, error="node-3 does not answer")
    look = a_look(status=a_cluster(a_replica(lag=1_234), away))

    lines = drawn(at("shards"), look)
    assert "FOLLOWERS" in lines[8] and "1.2k/?" in lines[9]
    session = at("shards")
    session.enter(Place("shard", subject="0"))
    text = "\n".join(drawn(session, look))
    assert "does not answer" in text and "1234 behind" in text
    assert "FOLLOWERS" not in drawn(at("shards"), a_look())[8]


def test_a_job_is_shown_with_its_why_and_its_attempts() -> None:
    attempts = [AttemptView(1, "w1", "failed", NOON, NOON, "boom", "line 1\nline 2")]
    job = a_job(state="retrying", attempts=attempts, unique_key="u", tags={"tenant": "acme"})
    why = WhyView(ID, "mail", "retrying", "RETRY_BACKOFF", "it waits for its retry", also=["PAUSED"], until=NOON)

    text = drawn(at(f"job {ID}"), a_look(job=job, why=why))

    assert [line for line in text if line.startswith("why")] == ["why         RETRY_BACKOFF"]
    for sentence in ("it waits for its retry", "then: PAUSED", "boom", "line 2", '{"to":"ada"}', '{"tenant":"acme"}'):
        assert any(sentence in line for line in text), sentence
    assert text[-1].startswith("C cancel · Esc back")


def test_a_job_that_is_not_there_is_told() -> None:
    assert "no such job (404)" in drawn(at("job x"), a_look(refusals={"job": "no such job (404)"}))
    assert "asking for the job" in drawn(at("job x"), a_look(job=a_job()))


def test_help_needs_no_more_than_eighty_columns() -> None:
    assert max(map(len, HELP.splitlines())) <= 80


def test_long_texts_scroll() -> None:
    session = at("help")
    lines = drawn(session, a_look())
    assert lines[-2].startswith("…") and "more lines" in lines[-2]
    session.press("G")
    assert drawn(session, a_look())[-2] == "LEAVE     q or Ctrl-C"


def test_the_question_has_the_last_line_and_marks_are_shown() -> None:
    session = at("jobs")
    look = a_look(jobs=a_search_answer(a_summary(id="a"), a_summary(id="b")))
    drawn(session, look)
    session.press("space")
    assert drawn(session, look)[9].startswith("* ✖ dead") and "1 marked" in drawn(session, look)[7]
    session.press("R")
    assert drawn(session, look)[-1] == "retry job a? y/n"
    session.is_read_only, session.question = True, None
    assert "retry" not in drawn(session, look)[-1]


def test_empty_panes_say_why() -> None:
    empty = a_look(jobs=a_search_answer(), errors=ErrorGroupsAnswer([], False, 1.0))
    for command, words in (("failures", "no job has failed"), ("held", "approval"), ("errors", "no errors")):
        assert any(words in line for line in drawn(at(command), empty))
    assert "asking the server" in drawn(at("failures"), a_look())
    session = at("queues nothing")
    assert any("nothing matches" in line for line in drawn(session, a_look(queues=[a_queue()])))


def test_a_snapshot_has_all_rows_and_no_keys() -> None:
    look = a_look(queues=[a_queue(f"q{number}") for number in range(100)], workers=[a_worker()])

    text = "\n".join(line.plain for line in snapshot(Past(None, look), Link(0.0), 120))

    assert "q99" in text and "WORKER" in text and "SHARD" in text and "quit" not in text and "every" not in text
