"""`corvo audit`: what each command asks, and what it prints."""

import io
import json
from pathlib import Path

import pytest

from corvo.cli.main import run
from corvo.cli.screen.show_audit import change_of
from corvo.client.answers import AuditLogsAnswer, AuditLogView, AuditMetadata
from corvo.client.audit_export import LINE_BYTES_MAX, NotAnExport, split_lines
from tests.cli.answers import NOON
from tests.client.playback import Playback
from tests.corvo.model.test_audit_chain import anchor_of, export

LOG = AuditLogView(
    id=41,
    namespace="default",
    principal="ada\x1b[31m@example.org",
    role="admin",
    method="POST",
    path="/api/v1/queues/mail/concurrency",
    status_code=200,
    metadata=AuditMetadata(duration_ms=1.5),
    created_at=NOON,
    outcome="ok",
    address="192.0.2.7",
    before={"max_concurrency": None, "paused": False},
    after={"max_concurrency": 5, "paused": False},
)
LINES = export(4)
TEXT = b"\n".join(LINES) + b"\n"


@pytest.fixture(autouse=True)
def _use_the_playback(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_SERVER", playback.url)


@pytest.mark.parametrize("command", ["list", "export", "verify"])
def test_each_command_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", command, "--help"]) == 0

    shown = capsys.readouterr().out
    assert "Example" in shown and f"  corvo audit {command}" in shown


# list


def test_list_sends_the_filters_and_prints_what_changed(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("GET", "/audit-logs", AuditLogsAnswer([LOG], 1, 50, 0, True, False, 3.0))

    arguments = ["--principal", "ada", "--method", "POST", "--path-prefix", "/api/v1/queues/", "--namespace", "default"]
    assert run(["audit", "list", *arguments, "--outcome", "ok", "--since", "2026-01-31", "--limit", "7"]) == 0

    asked = playback.asked[0].path
    for part in ("principal=ada", "method=POST", "path_prefix=%2Fapi%2Fv1%2Fqueues%2F", "namespace=default"):
        assert part in asked
    for part in ("outcome=ok", "since=2026-01-31T00%3A00%3A00Z", "limit=7", "consistent=true"):
        assert part in asked
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "max_concurrency: - → 5" in shown and "192.0.2.7" in shown and "1 of 1" in shown


def test_list_as_json(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("GET", "/audit-logs", AuditLogsAnswer([LOG], 1, 50, 0, True, False, 3.0))

    assert run(["audit", "list", "--output", "json"]) == 0

    assert json.loads(capsys.readouterr().out)["audit_logs"][0]["id"] == 41


def test_what_changed_in_a_line() -> None:
    def shown(**fields: object) -> str:
        values = {name: getattr(LOG, name) for name in LOG.__struct_fields__} | {"before": None, "after": None} | fields
        return change_of(AuditLogView(**values))

    assert shown(change={"max": 5}) == '{"max":5}'
    assert shown(code="WRONG_STATE") == "WRONG_STATE"
    assert shown(before={"a": 1}) == "a: 1 → -"


# export


def test_export_to_standard_output(playback: Playback, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    playback.answer("GET", "/audit-logs/export", TEXT)

    assert run(["audit", "export", "--after", "3", "--namespace", "acme"]) == 0

    assert playback.asked[0].path.endswith("?after=3&namespace=acme")
    assert capfdbinary.readouterr().out == TEXT


def test_export_to_a_file_and_verify_it(playback: Playback, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("GET", "/audit-logs/export", TEXT)
    file = tmp_path / "audit.ndjson"

    assert run(["audit", "export", str(file)]) == 0
    assert run(["audit", "verify", str(file)]) == 0

    assert file.read_bytes() == TEXT
    assert [path.name for path in tmp_path.iterdir()] == ["audit.ndjson"]
    newest = anchor_of(LINES, 4)
    assert capsys.readouterr().out == f"ok: 4 records after 0\nnewest: 4:{newest.hash.hex()}\n"


def test_an_export_that_is_refused_leaves_no_file(
    playback: Playback, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    playback.refuse("GET", "/audit-logs/export", 403, "FORBIDDEN", "not you")

    assert run(["audit", "export", str(tmp_path / "audit.ndjson")]) == 1

    assert "not you (FORBIDDEN)" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_an_error(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("GET", "/audit-logs/export", TEXT)

    assert run(["audit", "export", "/nowhere/audit.ndjson"]) == 1

    assert "cannot be written" in capsys.readouterr().err


# verify


def test_verify_asks_the_server(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("GET", "/audit-logs/export", TEXT)

    assert run(["audit", "verify", "--output", "json"]) == 0

    found = json.loads(capsys.readouterr().out)
    newest = anchor_of(LINES, 4)
    assert found == {
        "status": "ok",
        "records": 4,
        "after": 0,
        "newest": 4,
        "hash": newest.hash.hex(),
        "namespace": "",
    }


def test_verify_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT)))

    assert run(["audit", "verify", "-"]) == 0

    assert "ok: 4 records" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (TEXT.replace(b'"/2"', b'"/9"'), "line 3, record 2: its hash does not match"),
        (b"\n".join([*LINES[:2], *LINES[3:]]), "record 2: record 3 stands here"),
        (b"\n".join(LINES[:-1]), "record 5: the export has no end"),
        (TEXT + b"\n", "something follows the end"),
        (b"", "the export has no end"),
        (b"hello", "no head of an export"),
        (TEXT.replace(b"\n", b"\r\n"), "record 1"),
    ],
)
def test_a_changed_file_is_named_by_its_first_wrong_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, words: str
) -> None:
    file = tmp_path / "audit.ndjson"
    file.write_bytes(content)

    assert run(["audit", "verify", str(file)]) == 1

    said = capsys.readouterr().err
    assert words in said and "(BROKEN_CHAIN)" in said


def test_an_expected_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "audit.ndjson"
    file.write_bytes(TEXT)
    right = anchor_of(LINES, 3).hash.hex()

    assert run(["audit", "verify", str(file), "--expect", f"3:{right}"]) == 0
    assert run(["audit", "verify", str(file), "--expect", f"2:{right}"]) == 1
    assert run(["audit", "verify", str(file), "--expect", f"9:{right}"]) == 1
    said = capsys.readouterr().err
    assert "record 2: its hash is another than the expected one" in said
    assert "record 9: it is expected, but the log ends with 4" in said


@pytest.mark.parametrize(
    "arguments", [["--expect", "7"], ["--expect", "x:y"], ["a.ndjson", "--after", "3"]], ids=lambda one: one[0]
)
def test_wrong_usage(arguments: list[str]) -> None:
    assert run(["audit", "verify", *arguments]) == 2


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "verify", "nothing.ndjson"]) == 1

    assert "cannot be read" in capsys.readouterr().err


def test_an_export_of_one_namespace_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "audit.ndjson"
    file.write_bytes(b"\n".join(export(4, namespace="acme")))

    assert run(["audit", "verify", str(file)]) == 0

    assert "of the namespace acme; those of others are not in it" in capsys.readouterr().out


def test_lines_end_with_a_line_feed_and_nothing_else() -> None:
    whole = '{"a":"\u2028\x85"}\n{}\n'.encode()

    assert list(split_lines([whole[:7], whole[7:]])) == ['{"a":"\u2028\x85"}'.encode(), b"{}"]
    with pytest.raises(NotAnExport):
        list(split_lines([b"x" * LINE_BYTES_MAX, b"x"]))
