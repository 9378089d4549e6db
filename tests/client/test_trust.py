"""Whom a client believes, and what it says when it does not."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from corvo.cli.main import run
from corvo.client.http import Client, UntrustedServer
from corvo.client.trust import BadAuthority, trusting
from corvo.runtime.certificate import load_certificate
from tests.cli.answers import prepare
from tests.client.playback import Playback, playing
from tests.support.authority import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secure(authority: Authority) -> Iterator[Playback]:
    context = load_certificate(*authority.sign())
    context.set_alpn_protocols(["http/1.1"])
    with playing(context) as playback:
        prepare(playback)
        yield playback


def test_a_server_whose_authority_is_named_is_believed(secure: Playback, authority: Authority) -> None:
    with Client(secure.url, ca_cert=authority.file) as client:
        assert client.queues()


def test_a_server_that_nobody_vouches_for_is_not_believed(secure: Playback) -> None:
    with Client(secure.url) as client, pytest.raises(UntrustedServer) as refused:
        client.queues()

    assert "is not trusted: unable to get local issuer certificate; --ca-cert or CORVO_CA_CERT" in str(refused.value)


def test_a_server_of_another_authority_is_not_believed(secure: Playback, tmp_path: Path) -> None:
    other = Authority(tmp_path)
    with Client(secure.url, ca_cert=other.file) as client, pytest.raises(UntrustedServer, match="is not trusted"):
        client.queues()


def test_a_server_of_another_name_is_not_believed(secure: Playback, authority: Authority) -> None:
    elsewhere = secure.url.replace("127.0.0.1", "127.1")
    with (
        Client(elsewhere, ca_cert=authority.file) as client,
        pytest.raises(UntrustedServer, match=r"valid for .127\.1."),
    ):
        client.queues()


def test_the_variable_of_openssl_is_heeded(
    secure: Playback, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", authority.file)
    with Client(secure.url) as client:
        assert client.queues()


def test_without_a_word_the_authorities_of_the_world_are_trusted() -> None:
    assert trusting(None).cert_store_stats()["x509_ca"] > 10


def test_a_file_of_authorities_that_is_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    with pytest.raises(BadAuthority, match="--ca-cert /nowhere cannot be used: no such file or directory; name a file"):
        trusting("/nowhere")
    with pytest.raises(BadAuthority, match=r"empty\.pem cannot be used: it holds no certificate in PEM"):
        trusting(str(tmp_path / "empty.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    with pytest.raises(BadAuthority, match="SSL_CERT_FILE /nowhere cannot be used"):
        trusting(None)


def test_tls_to_a_server_of_plain_words_is_told_apart(playback: Playback, authority: Authority) -> None:
    address = playback.url.replace("http", "https")
    with Client(address, ca_cert=authority.file) as client, pytest.raises(UntrustedServer, match="begins with http://"):
        client.queues()


# The commands


def test_every_command_that_asks_a_server_can_be_told_whom_to_trust(
    secure: Playback, authority: Authority, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["--server", secure.url]
    assert run(["queues", *asked, "--ca-cert", authority.file]) == 0
    assert run(["top", "--once", *asked, "--ca-cert", authority.file]) == 0
    assert run(["cluster", "status", *asked, "--ca-cert", authority.file]) == 0
    assert run(["queues", *asked]) == 1, "what one command was told is not kept for the next"
    monkeypatch.setenv("CORVO_CA_CERT", authority.file)
    assert run(["queues", *asked]) == 0

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"corvo: the certificate of {secure.url} is not trusted: ")


def test_a_file_that_cannot_be_used_is_wrong_usage(secure: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["queues", "--server", secure.url, "--ca-cert", "/nowhere"]) == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("corvo: --ca-cert /nowhere cannot be used: ")


def test_no_authorities_are_read_for_a_server_of_plain_words(playback: Playback) -> None:
    """They take longer to read than the rest of a command takes."""
    prepare(playback)
    program = (
        "import ssl, sys\n"
        "from corvo.client.http import Client\n"
        "sys.addaudithook(lambda event, words: event == 'open' and str(words[0]).endswith('.pem') and sys.exit(7))\n"
        "Client(sys.argv[1]).queues()\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SSL_CERT")}
    done = subprocess.run([sys.executable, "-c", program, playback.url], env=environment, check=False)
    assert done.returncode == 0
