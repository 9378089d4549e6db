"""The console's files: which are served, how, and that no path leads out of their folder."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.console.assets import DEPTH_MAX, Console, parse_accepted
from tests.gateway.asgi import Reply
from tests.gateway.console.asking import ask

INDEX = b'<base href="./"><meta name="sign-on" content="off"><script src="./assets/main-abcd1234.js"></script>'
SCRIPT = b"console.log('corvo');" * 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    built = tmp_path / "built"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_bytes(INDEX)
    (built / "theme.js").write_bytes(b"1")
    (built / "assets" / "main-abcd1234.js").write_bytes(SCRIPT)
    (built / "assets" / "main-abcd1234.js.gz").write_bytes(gzip.compress(SCRIPT))
    (built / "assets" / "main-abcd1234.js.br").write_bytes(b"as if by brotli")
    (built / ".made-from").write_text("secret")
    (tmp_path / "secret.js").write_text("secret")
    return built


def get(console: Console, path: str, *headers: tuple[bytes, bytes], method: str = "GET") -> Reply:
    return ask(console, path, *headers, method=method)


def test_a_hashed_file_is_kept_for_ever_and_the_index_is_asked_for_each_time(folder: Path) -> None:
    console = Console(folder)

    script = get(console, "/ui/assets/main-abcd1234.js")
    assert (script.status, script.content) == (200, SCRIPT)
    assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert get(console, "/ui/theme.js").headers["cache-control"] == "no-cache"
    assert get(console, "/ui/").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, deflate, br, zstd", "br"),
        ("gzip", "gzip"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("br;q=0,gzip;q=0", None),
        ("identity", None),
        ("", None),
        ("gzip;q=nonsense", None),
    ],
)
def test_the_smallest_copy_that_the_browser_takes_is_sent(folder: Path, accepted: str, coding: str | None) -> None:
    reply = get(Console(folder), "/ui/assets/main-abcd1234.js", (b"accept-encoding", accepted.encode()))

    assert reply.headers.get("content-encoding") == coding
    assert reply.headers["vary"] == "accept-encoding"
    if coding == "gzip":
        assert gzip.decompress(reply.content) == SCRIPT


@given(st.text(max_size=60))
def test_any_header_of_codings_can_be_read(header: str) -> None:
    assert all(0.0 <= weight < 2.0 for weight in parse_accepted(header).values())


@pytest.mark.parametrize(
    ("path", "base"),
    [
        ("/ui/", b"./"),
        ("/ui/queues", b"./"),
        ("/ui/queues/mail", b"../"),
        ("/ui/queues/a/b/c", b"../../../"),
        ("/ui/jobs/", b"../"),
        ("/ui//evil.example/", b"../../"),
    ],
)
def test_a_page_finds_its_files_from_any_depth(folder: Path, path: str, base: bytes) -> None:
    """Relative, so that it works under the prefix of a proxy too."""
    reply = get(Console(folder), path)

    assert reply.status == 200
    assert b'<base href="%b">' % base in reply.content


def test_the_address_of_a_page_has_a_bound(folder: Path) -> None:
    assert get(Console(folder), "/ui" + "/x" * (DEPTH_MAX + 2)).status == 404


def test_the_entry_leads_to_the_pages_under_any_prefix(folder: Path) -> None:
    reply = get(Console(folder), "/ui", (b"host", b"evil.example"))

    assert (reply.status, reply.headers["location"]) == (307, "ui/")


@pytest.mark.parametrize(
    "path",
    [
        "/ui/assets/../../secret.js",
        "/ui/assets/nothing-abcd1234.js",
        "/ui/assets/",
        "/ui/assets/main-abcd1234.js.br",
        "/ui/../secret.js",
        "/ui//etc/passwd",
        "/ui/.made-from",
        "/ui/..%2f..%2fsecret.js",
        "/ui/assets/..\\..\\secret.js",
    ],
)
def test_no_path_leads_out_of_the_folder(folder: Path, path: str) -> None:
    """S30. A path is looked up among the names that were there at the start."""
    reply = get(Console(folder), path)

    assert b"secret" not in reply.content and b"root:" not in reply.content
    assert reply.status == 404 or b"<base" in reply.content, "nothing, or the page that says there is no such page"


@given(st.text(alphabet="./\\%abc-~", max_size=40))
def test_whatever_the_path_only_listed_files_come_back(path: str) -> None:
    console = Console(Path(__file__).parent)  # a folder with Python files, which are not served

    reply = get(console, "/ui/" + path.replace("%", ""))

    assert reply.status in (404, 503), "there is no index here, and nothing else that may be served"


def test_a_page_may_run_and_load_nothing_but_its_own_files(folder: Path) -> None:
    policy = get(Console(folder), "/ui/").headers["content-security-policy"]

    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy and "data:" not in policy


def test_without_a_build_it_says_so(tmp_path: Path) -> None:
    console = Console(tmp_path / "absent")

    assert not console.is_built
    reply = get(console, "/ui/queues/mail")
    assert (reply.status, b"make setup" in reply.content) == (503, True)
    assert b'href="../../docs"' in reply.content


def test_an_index_without_a_place_for_its_base_is_no_console(folder: Path) -> None:
    (folder / "index.html").write_bytes(b"<!doctype html>")

    with pytest.raises(ValueError, match="no place for its base"):
        Console(folder)


def test_the_page_is_told_whether_there_is_a_sign_on(folder: Path) -> None:
    assert b'content="off"' in get(Console(folder), "/ui/").content
    assert b'content="on"' in get(Console(folder, lambda: True), "/ui/").content


def test_only_reading_is_served(folder: Path) -> None:
    console = Console(folder)

    assert get(console, "/ui/", method="HEAD").status == 200
    assert get(console, "/ui/", method="POST").status == 405
