"""Asking for a rebuild: what the gateway leaves for the mirror, and what it answers."""

import threading
from pathlib import Path

import pytest

from gateway.api import rebuild
from gateway.readdb import rebuild_request
from tests.gateway.asgi import Reply, a_scope
from tests.gateway.mirror.mirrors import eventually
from tests.gateway.search.conftest import Written
from tests.gateway.whole_house import WholeHouse


def post(house: WholeHouse, query: str, name: str = "rebuild-read-db") -> Reply:
    return house.ask(a_scope("POST", f"/api/v1/admin/{name}", query_string=query.encode()))


@pytest.mark.parametrize(("name", "query"), [("rebuild-read-db", ""), ("rebuild-sqlite", "wait=false")])
def test_a_rebuild_is_asked_for_and_not_waited_for(house: WholeHouse, written: Written, name: str, query: str) -> None:
    reply = post(house, query, name)

    assert (reply.status, reply.json["status"], reply.json["rebuilt"]) == (202, "building", False)
    assert reply.json["generation"] == written.writer.generation
    assert rebuild_request.take(written.path.parent)


@pytest.mark.parametrize(("name", "query"), [("rebuild-read-db", "wait=true"), ("rebuild-sqlite", "")])
def test_whoever_waits_is_told_when_it_is_over(house: WholeHouse, written: Written, name: str, query: str) -> None:
    replies = []
    context = threading.Thread(target=lambda: replies.append(post(house, query, name)))
    context.start()
    eventually(lambda: rebuild_request.take(written.path.parent))
    assert not replies

    written.swap()
    context.join(5)

    assert (replies[0].status, replies[0].json["status"], replies[0].json["rebuilt"]) == (200, "ok", True)
    assert replies[0].json["generation"] == written.writer.generation
    assert replies[0].json["duration_ms"] >= 0


def test_nobody_waits_for_ever(house: WholeHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "WAIT_S_MAX", 0.1)

    assert post(house, "wait=true").status == 202


def test_without_a_database_there_is_one_to_wait_for(blind_house: WholeHouse, tmp_path: Path) -> None:
    reply = blind_house.post("/admin/rebuild-read-db")

    assert (reply.status, reply.json["generation"]) == (202, "")
    assert rebuild_request.take(tmp_path)


@pytest.mark.parametrize("query", ["wait=perhaps", "await=true"])
def test_a_parameter_that_is_none_is_refused(house: WholeHouse, tmp_path: Path, query: str) -> None:
    assert post(house, query).status == 400
    assert not rebuild_request.take(tmp_path)
