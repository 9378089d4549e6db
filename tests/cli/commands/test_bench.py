"""`corvo bench`: what it refuses before it sends anything."""

import pytest

from corvo.cli.main import run


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--mode", "burst", "--seconds", "3"], "--mode burst ends when all its jobs are done; give --jobs"),
        (["--rate", "5"], "--rate is for --mode latency"),
        (["--connections", "0"], "--connections"),
        (["--batch", "513"], "--batch"),
        (["--mode", "furious"], "--mode"),
        (["--protocol", "smoke-signals"], "--protocol"),
        (["--server", "http://192.0.2.1:8080"], "is not this machine; give --yes to put load on it"),
        (["--server", "ftp://localhost"], "is no address of a server"),
    ],
)
def test_bad_flags_are_one_line(flags: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", *flags]) == 2

    shown = capsys.readouterr()
    assert shown.out == ""
    assert words in shown.err and shown.err.count("\n") == 1


def test_a_server_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "--server", "http://127.0.0.1:9"]) == 1

    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("corvo: nothing answers at http://127.0.0.1:9") and shown.err.count("\n") == 1
