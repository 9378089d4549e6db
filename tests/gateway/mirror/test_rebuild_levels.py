"""How loudly a rebuild begins: a database that is not there yet, or that somebody asked for, is no warning."""

from typing import Any

from structlog.testing import capture_logs

from gateway.readdb import rebuild_request

from .mirrors import Mirror, caught_up, eventually, generation_of


def beginnings(lines: list[Any]) -> list[tuple[str, str]]:
    return [(line["log_level"], line["reason"]) for line in lines if "rebuild" in line["event"] and "reason" in line]


def test_a_first_start_is_no_warning(tmp_path, place, shards):
    with capture_logs() as lines, Mirror(tmp_path, place, shards):
        caught_up(place, shards)

    ((level, reason),) = beginnings(lines)
    assert (level, "does not exist" in reason) == ("info", True)
    assert {line["log_level"] for line in lines} == {"info"}


def test_a_requested_rebuild_is_no_warning(tmp_path, place, shards):
    with Mirror(tmp_path, place, shards):
        caught_up(place, shards)
        before = generation_of(place)
        with capture_logs() as lines:
            rebuild_request.leave(tmp_path)
            eventually(lambda: generation_of(place) != before)

    assert beginnings(lines) == [("info", "requested")]


def test_a_database_of_another_layout_is_a_warning(tmp_path, place, shards):
    with Mirror(tmp_path, place, shards):
        caught_up(place, shards)
    place.tamper("UPDATE mirror_meta SET shards = 7")

    with capture_logs() as lines, Mirror(tmp_path, place, shards):
        caught_up(place, shards)

    assert beginnings(lines) == [("warning", "it was made for 7 shards, the node has 2")]
