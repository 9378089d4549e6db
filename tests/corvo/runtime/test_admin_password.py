"""The file of the admin password, and when a server without one is open to others."""

from pathlib import Path

import pytest

from corvo.runtime.admin_password import BadPassword, exposure, read_password
from corvo.runtime.settings import Settings


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (b"0123456789abcdef", 0o604, "is open to everybody; keep it to yourself: chmod 600"),
        (b"0123456789abcdef", 0o666, "is open to everybody"),
        (b"0123456789abcde\n", 0o600, "has 15 characters; it needs 16 to 512: make one with"),
        (b"x" * 600, 0o600, "it needs 16 to 512"),
        (b"0123456789 abcdef", 0o600, "holds a space or a character that no HTTP header carries"),
        ("0123456789\u00e4bcdef".encode(), 0o600, "holds a space or a character"),
        (b"0123456789\x00abcdef", 0o600, "holds a space or a character"),
        (None, 0, "cannot be read: no such file or directory; choose another --admin-password-file"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_remedy(
    tmp_path: Path, content: bytes | None, mode: int, words: str
) -> None:
    path = tmp_path / "password"
    if content is not None:
        path.write_bytes(content)
        path.chmod(mode)

    with pytest.raises(BadPassword, match=words) as refused:
        read_password(str(path))
    assert content is None or content.decode("latin-1").strip() not in str(refused.value)


@pytest.mark.parametrize("mode", [0o400, 0o440, 0o600, 0o640])
def test_the_password_is_what_the_file_holds(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "password"
    path.write_text("  0123456789abcdef\n")
    path.chmod(mode)

    assert read_password(str(path)) == "0123456789abcdef"


def test_without_a_file_there_is_no_password() -> None:
    assert read_password("") is None


def test_the_sentence_about_an_open_address_is_one_line_that_says_what_to_pass() -> None:
    fault = exposure(Settings(bind=":8080"))

    assert "\n" not in fault
    assert all(flag in fault for flag in ("--bind :8080", "--admin-password-file", "--auth on", "--auth off"))
    assert exposure(Settings()) == ""
