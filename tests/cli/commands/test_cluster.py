"""`corvo cluster`: what each command asks, and what it prints."""

import io

import msgspec
import pytest
from rich.console import Console, RenderableType

from corvo.cli.main import run
from corvo.cli.screen import show_cluster
from corvo.queries.cluster import ClusterStatus, MembershipView, NodeView, TransferView
from corvo.queries.members import GroupView, JoinBody, MembersView, RemoveBody, TransferBody
from tests.cli.answers import a_cluster, a_replica, a_shard, a_status
from tests.client.playback import Playback

MEMBERS = MembersView("node-4", [GroupView(0, ["node-1", "node-2"], ["node-4"], False), GroupView(1, [], [], True)])


@pytest.fixture(autouse=True)
def _use_the_playback(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_SERVER", playback.url)


def drawn(content: RenderableType) -> list[str]:
    shown = io.StringIO()
    Console(file=shown, width=200, color_system=None).print(content)
    return [line.rstrip() for line in shown.getvalue().splitlines()]


@pytest.mark.parametrize("command", ["status", "add", "remove", "transfer"])
def test_each_command_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cluster", command, "--help"]) == 0

    shown = capsys.readouterr().out
    assert "Example" in shown and f"  corvo cluster {command}" in shown


@pytest.mark.parametrize(
    ("arguments", "path", "body"),
    [
        (["add", "node-4", "db-4:9400"], "/cluster/join", JoinBody(node_id="node-4", address="db-4:9400")),
        (["remove", "node-4", "--yes"], "/cluster/remove", RemoveBody(node_id="node-4")),
        (["transfer", "node-4"], "/cluster/transfer", TransferBody(node_id="node-4")),
        (["transfer", "node-4", "--shard", "0"], "/cluster/transfer", TransferBody(node_id="node-4", shard=0)),
    ],
)
def test_a_change_sends_what_was_asked_and_shows_the_members(
    playback: Playback,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    path: str,
    body: msgspec.Struct,
) -> None:
    playback.answer("POST", path, MEMBERS)

    assert run(["cluster", *arguments]) == 0

    assert msgspec.json.decode(playback.asked[0].body, type=type(body)) == body
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [["0", "node-1,", "node-2", "node-4"], ["1", "under", "way"]]


def test_json_is_the_answer_itself(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", "/cluster/remove", MEMBERS)
    playback.answer("GET", "/cluster/status", a_cluster(a_replica()))

    assert run(["cluster", "remove", "node-4", "--yes", "--output", "json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out, type=MembersView) == MEMBERS
    assert run(["cluster", "status", "-o", "json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out, type=ClusterStatus) == a_cluster(a_replica())


def test_a_change_that_is_refused_is_one_line_and_exit_code_1(
    playback: Playback, capsys: pytest.CaptureFixture[str]
) -> None:
    playback.refuse("POST", "/cluster/remove", 409, "MEMBERSHIP_REFUSED", "node-1 is the last voter of shard 0")

    assert run(["cluster", "remove", "node-1", "--yes"]) == 1

    assert capsys.readouterr().err == "corvo: node-1 is the last voter of shard 0 (MEMBERSHIP_REFUSED)\n"


def test_remove_without_a_terminal_needs_a_yes(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cluster", "remove", "node-1"]) == 2

    assert "give --yes" in capsys.readouterr().err and playback.asked == []


@pytest.mark.parametrize("arguments", [["add", "node-4"], ["transfer", "node-4", "--shard", "-1"], ["nonsense"]])
def test_wrong_usage_is_one_line_and_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cluster", *arguments]) == 2

    assert len(capsys.readouterr().err.splitlines()) == 1


def test_status_shows_nodes_and_a_row_for_each_replica(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    behind = a_replica("node-3", role="learner", applied_index=73, lag=17, mode="probe", last_contact_ms=12_000.0)
    playback.answer("GET", "/cluster/status", a_cluster(a_replica(), behind))

    assert run(["cluster", "status"]) == 0

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["node-1", "node-1:9400", "reachable", "1", "of", "1"] in lines
    assert ["node-3", "node-3:9400", "reachable", "0", "of", "1"] in lines
    assert ["0", "node-1", "3", "node-1", "leader", "90", "90", "0", "90", "2.0", "KiB"] in lines
    assert ["node-2", "follower", "90", "90", "0", "12", "ms", "replicate", "90", "2.0", "KiB"] in lines
    assert ["node-3", "learner", "90", "73", "17", "12", "s", "probe", "90", "2.0", "KiB"] in lines


def test_what_does_not_answer_is_shown_with_its_reason() -> None:
    away = a_replica("node-2", role="unreachable", lag=None, error="node-2 does not answer")
    view = a_cluster(away, nodes=[NodeView("node-2", "db-2:9400", False)])
    view.groups.append(a_shard(1, error="shard 1 is not reachable"))

    lines = drawn(show_cluster.status(view))

    assert any("node-2" in line and "unreachable" in line and line.endswith("node-2 does not answer") for line in lines)
    assert any(line.lstrip().startswith("1  ?") and line.endswith("shard 1 is not reachable") for line in lines)
    assert any("db-2:9400  does not answer" in line for line in lines)


def test_a_voter_on_its_way_out_and_a_shard_without_leader_are_marked() -> None:
    view = a_cluster(a_replica())
    view.groups[0].members = MembershipView(voters=["node-1"], outgoing=["node-1", "node-2"])
    view.groups[0].leader_id = ""

    shown = "\n".join(drawn(show_cluster.status(view)))

    assert "node-2 (leaving)" in shown and "node-1 (leaving)" not in shown and "0  none" in shown


def test_transfers_are_shown_only_when_there_are_some() -> None:
    view = a_cluster(a_replica())
    assert "STATE FROM" not in "\n".join(drawn(show_cluster.status(view)))

    view.groups[0].transfers = [TransferView("node-1", "node-2", 90, 1_000, 3 * 2**20)]

    assert drawn(show_cluster.status(view))[-1].split() == ["0", "node-1", "node-2", "90", "1000", "3.0", "MiB"]


def test_a_node_alone_is_shown_as_such() -> None:
    view = a_status(1, nodes=[NodeView("node-1", "", True)])

    assert any(line.split()[:2] == ["node-1", "alone"] for line in drawn(show_cluster.status(view)) if line)


def test_names_of_others_are_harmless() -> None:
    assert "\x1b" not in "\n".join(drawn(show_cluster.status(a_cluster(a_replica("\x1b[2J")))))


def test_spans_and_sizes_are_short() -> None:
    assert [show_cluster.span(one) for one in (None, 0.4, 9_999, 61_000)] == ["", "0 ms", "9999 ms", "61 s"]
    assert [show_cluster.size(one) for one in (0, 1023, 1536, 2**30, 2**50)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "1.0 GiB",
        "1024.0 TiB",
    ]
