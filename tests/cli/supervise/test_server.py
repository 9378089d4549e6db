"""What `corvo server` checks before anything starts, and what it leaves behind."""

import json
import os
import random
import socket
import stat
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from corvo.cli.supervise import server
from corvo.cli.supervise.ports import free_row
from corvo.cli.supervise.server import (
    CannotStart,
    await_orphans,
    banner,
    check_certificate,
    check_credentials,
    check_driver,
    check_http_server,
    check_identity,
    check_raft_ports,
    check_secret,
    claim_port,
    make_directories,
    make_identity,
    make_secret,
    url_of,
)
from corvo.runtime.process import RUN, Identity, read_secret, read_settings, take_lock, write_identity
from corvo.runtime.settings import Settings
from tests.cli.nodes import dummies, running, tried
from tests.support.authority import Authority


def test_a_new_directory_is_made_for_these_settings(tmp_path: Path) -> None:
    settings = Settings(shards=3, node_id="a")

    assert check_identity(tmp_path, settings) is None
    assert make_identity(tmp_path, settings)

    identity = check_identity(tmp_path, settings)
    assert identity is not None and (identity.shards, identity.node_id, len(identity.cluster_id)) == (3, "a", 32)
    assert identity.founders is None


def test_a_directory_made_for_something_else_is_refused(tmp_path: Path) -> None:
    make_identity(tmp_path, Settings(shards=4, node_id="a"))

    with pytest.raises(CannotStart, match="made with 4 shards; start with --shards 4 or use another --data-dir"):
        check_identity(tmp_path, Settings(shards=5, node_id="a"))
    with pytest.raises(CannotStart, match="belongs to node a; start with --node-id a"):
        check_identity(tmp_path, Settings(shards=4, node_id="b"))


def test_a_node_of_a_cluster_does_not_start_alone(tmp_path: Path) -> None:
    write_identity(tmp_path, Identity("c", "node-1", 4, founders=("node-1", "node-2")))

    with pytest.raises(CannotStart, match="of a cluster; start with --bootstrap, --peers, --join or"):
        check_identity(tmp_path, Settings())
    assert check_identity(tmp_path, Settings(join="127.0.0.1:9400"))


def test_an_identity_that_cannot_be_read_is_not_made_anew(tmp_path: Path) -> None:
    (tmp_path / "identity.json").write_text("")

    with pytest.raises(CannotStart, match=r"identity\.json cannot be read"):
        check_identity(tmp_path, Settings())


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (b"0123456789abcdef\n", 0o604, "is open to everybody; keep it to yourself with `chmod 600"),
        (b"0123456789abcdef\n", 0o602, "is open to everybody"),
        (b"0123456789abcde\n", 0o600, "has 15 bytes and needs 16; make one with `head -c 32"),
        (None, 0, "cannot be read: no such file or directory; choose another --cluster-secret-file"),
    ],
)
def test_a_secret_that_is_none_is_refused(tmp_path: Path, content: bytes | None, mode: int, words: str) -> None:
    if content is not None:
        (tmp_path / "secret").write_bytes(content)
        (tmp_path / "secret").chmod(mode)

    with pytest.raises(CannotStart, match=words):
        check_secret(str(tmp_path / "secret"))


@pytest.mark.parametrize("bind", [":8080", "0.0.0.0:8080", "[::]:8080", "10.0.0.1:8080", "corvo.example.org:8080"])
def test_a_server_that_others_reach_needs_a_credential_or_a_word(bind: str, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("0123456789abcdef")
    password.chmod(0o600)

    with pytest.raises(CannotStart, match=r"give --admin-password-file FILE .*--auth on .* or --auth off"):
        check_credentials(Settings(bind=bind))
    check_credentials(Settings(bind=bind, admin_password_file=str(password)))
    check_credentials(Settings(bind=bind, auth="on"))
    check_credentials(Settings(bind=bind, auth="off"))


@pytest.mark.parametrize("bind", ["127.0.0.1:0", "127.1.2.3:80", "[::1]:8080", "localhost:8080"])
def test_a_server_on_loopback_needs_none(bind: str) -> None:
    check_credentials(Settings(bind=bind))


def test_an_admin_password_that_cannot_be_used_stops_the_start_whatever_the_address(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="cannot be read: no such file or directory"):
        check_credentials(Settings(admin_password_file=str(tmp_path / "none")))


def test_a_secret_is_made_once_and_for_its_owner_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "secret"

    make_secret(path)
    made = path.read_text()
    make_secret(path)

    check_secret(str(path))
    assert path.read_text() == made and len(made) >= 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert capsys.readouterr().err.count(f"the cluster's secret is in {path};") == 1
    with pytest.raises(CannotStart, match=r"cannot make the cluster's secret .*: no such file or directory; choose"):
        make_secret(tmp_path / "nowhere" / "secret")


def test_a_node_that_begins_a_cluster_founds_it_alone(tmp_path: Path) -> None:
    settings = Settings(bootstrap=True, node_id="node-0")

    assert make_identity(tmp_path, settings)

    identity = check_identity(tmp_path, settings)
    assert identity is not None and identity.founders == ("node-0",)


def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    one, other = authority.sign("one"), authority.sign("other")

    check_certificate("", "")
    check_certificate(one.cert, one.key)
    with pytest.raises(CannotStart, match=r"other\.key does not belong to the certificate .*one\.pem; give two"):
        check_certificate(one.cert, other.key)


def test_a_driver_that_is_not_installed_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)  # as if it could not be imported

    with pytest.raises(CannotStart, match="pip install 'corvo-server\\[postgres\\]'"):
        check_driver("postgresql://host/db")
    check_driver("")


def test_the_secret_is_what_the_file_holds(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"0123456789abcdef\n")
    (tmp_path / "secret").chmod(0o640)

    assert read_secret(str(tmp_path / "secret")) == b"0123456789abcdef"
    assert read_secret("") is None


def test_a_port_for_other_nodes_in_use_is_refused_with_its_shard() -> None:
    first = free_row("127.0.0.1", 3, random.Random())
    with socket.socket() as other:
        other.bind(("127.0.0.1", first + 2))
        other.listen(1)
        check_raft_ports(f"127.0.0.1:{first}", 2)
        with pytest.raises(CannotStart, match=rf":{first + 2} for shard 2: address already in .*another --raft-bind"):
            check_raft_ports(f"127.0.0.1:{first}", 3)


def test_port_0_becomes_a_port_that_is_free() -> None:
    (listener,) = claim_port("127.0.0.1:0", 1)
    with listener:
        assert listener.getsockname()[1] > 0


@pytest.mark.parametrize("gateways", [1, 3])
@pytest.mark.parametrize("others", [1, 3])
def test_a_port_is_ours_from_the_claim_on(gateways: int, others: int) -> None:
    with ExitStack() as ours:
        listeners = [ours.enter_context(listener) for listener in claim_port("127.0.0.1:0", gateways)]
        (port,) = {listener.getsockname()[1] for listener in listeners}
        with pytest.raises(CannotStart, match="already in use"):
            claim_port(f"127.0.0.1:{port}", others)
    for listener in claim_port(f"127.0.0.1:{port}", others):
        listener.close()


def test_a_port_in_use_is_refused() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        with pytest.raises(CannotStart, match=r"cannot listen on .*: address already in use; choose another --bind"):
            claim_port(f"127.0.0.1:{other.getsockname()[1]}", 1)


def test_a_host_that_does_not_exist_is_refused() -> None:
    with pytest.raises(CannotStart, match="choose another --bind"):
        claim_port("no.such.host.invalid:8080", 1)


def test_an_http_server_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_http_server("hypercorn")
    monkeypatch.setitem(sys.modules, "granian", None)

    with pytest.raises(CannotStart, match=r"granian needs the package granian.*pip install 'corvo-server\[fast\]'"):
        check_http_server("granian")


def test_the_sockets_are_for_their_owner_only(tmp_path: Path) -> None:
    (tmp_path / "data" / RUN).mkdir(parents=True, mode=0o755)

    make_directories(tmp_path / "data")

    assert stat.S_IMODE((tmp_path / "data" / RUN).stat().st_mode) == 0o700


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")

    with pytest.raises(CannotStart, match="choose another --data-dir"):
        make_directories(tmp_path / "data")


def test_sockets_of_an_earlier_run_are_removed(tmp_path: Path) -> None:
    (tmp_path / "shard-0.ipc").write_text("")

    await_orphans(tmp_path, 0)

    assert not (tmp_path / "shard-0.ipc").exists()


def test_processes_of_an_earlier_server_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = take_lock(tmp_path / "shard-0.lock")
    monkeypatch.setattr(server.time, "sleep", lambda _: lock.close())  # type: ignore[attr-defined]  # it ends meanwhile

    await_orphans(tmp_path, 60)

    assert lock.closed


def test_a_process_that_stays_is_named(tmp_path: Path) -> None:
    with (
        take_lock(tmp_path / "shard-0.lock"),
        pytest.raises(CannotStart, match=rf"process {os.getpid()} of an earlier server still holds .*shard-0\.lock"),
    ):
        await_orphans(tmp_path, -1)


def test_the_banner_shows_where_and_two_commands() -> None:
    shown = banner(Settings(bind=":9090", fsync="off"))

    assert shown.count("curl http://localhost:9090/api/v1/") == 2
    assert "fsync is off" in shown and "fsync" not in banner(Settings())
    assert "curl https://127.0.0.1:8080/" in banner(Settings(tls_cert="c", tls_key="k"))
    guarded = banner(Settings(bind=":9090", admin_password_file="/etc/p"))
    assert guarded.count('-H "x-api-key: $(cat /etc/p)"') == 2 and "auth is off" not in guarded
    assert "auth is off" in banner(Settings(bind=":9090", auth="off"))
    assert "auth is off" not in banner(Settings(auth="off"))
    assert url_of("[::1]:80") == "http://[::1]:80"
    assert url_of("[::1]:80", is_secure=True) == "https://[::1]:80"
    assert url_of(":443", is_secure=True) == "https://localhost:443"


@pytest.mark.system
def test_what_the_processes_find_in_the_run_directory(tmp_path: Path) -> None:
    with running(tmp_path, dummies(tmp_path)) as node:
        node.await_(lambda: len(node.event_log()) == 4)

        settings = read_settings(tmp_path / "data" / RUN)
        pid = node.said("up", "shard-0")[0]
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")

        assert settings.data_dir == str(tmp_path / "data")
        assert settings.log_format == "json"  # the output is a file
        assert settings.bind.startswith("127.0.0.1:") and not settings.bind.endswith(":0")
        assert f"CORVO_SUPERVISED_BY={node.handle.pid}".encode() in environment
        assert not [name for name in environment if name.startswith(b"PYTHONUNBUFFERED")]
        assert Path(f"/proc/{pid}/cwd").readlink() == tmp_path / "data"


@pytest.mark.system
def test_a_second_server_on_the_same_directory_is_one_line_that_names_the_first(tmp_path: Path) -> None:
    with running(tmp_path, dummies(tmp_path)) as node:
        node.await_(lambda: len(node.event_log()) == 4)

        second = tried(tmp_path, dummies(tmp_path))

        assert second.returncode == 2 and second.stdout == ""
        (line,) = second.stderr.splitlines()
        assert f"another server (pid {node.handle.pid}) is using {tmp_path / 'data'}" in line
        assert len(node.event_log()) == 4 and node.handle.poll() is None


@pytest.mark.system
def test_a_port_in_use_or_another_shard_count_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        taken = tried(tmp_path, dummies(tmp_path), bind=f"127.0.0.1:{other.getsockname()[1]}")
    assert not (tmp_path / "data/identity.json").exists()  # what failed binds nobody to its shards
    make_identity(tmp_path / "data", Settings(shards=4))
    resharded = tried(tmp_path, dummies(tmp_path), shards=7)

    assert (taken.returncode, len(taken.stderr.splitlines())) == (2, 1)
    assert (resharded.returncode, len(resharded.stderr.splitlines())) == (2, 1)
    assert "made with 4 shards; start with --shards 4" in resharded.stderr
    assert not (tmp_path / "journal").exists()


@pytest.mark.system
def test_a_bad_certificate_is_one_line_and_exit_code_2_and_nothing_starts(tmp_path: Path) -> None:
    pair = Authority(tmp_path).sign()
    Path(pair.key).unlink()

    refused = tried(tmp_path, dummies(tmp_path), tls_cert=pair.cert, tls_key=pair.key)

    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert "server.key cannot be read: no such file or directory; choose another --tls-key" in refused.stderr
    assert not (tmp_path / "journal").exists() and not (tmp_path / "data/identity.json").exists()


@pytest.mark.system
def test_the_node_comes_back_after_its_supervisor_was_killed(tmp_path: Path) -> None:
    with running(tmp_path, dummies(tmp_path)) as first:
        first.await_(lambda: len(first.event_log()) == 4)
        orphans = [pid for _, _, pid in first.event_log()]
        first.handle.kill()
        first.handle.wait()
    for pid in orphans:  # dummies do not die with their parent; ours end here, by their own numbers
        os.kill(pid, 9)
    (tmp_path / "journal").unlink()

    with running(tmp_path, dummies(tmp_path)) as second:
        second.await_(lambda: len(second.event_log()) == 4)
        assert json.loads((tmp_path / "data/identity.json").read_text())["shards"] == 4
