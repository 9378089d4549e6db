"""The file of payload keys: private, a key a line, and never shown."""

import base64
from pathlib import Path

import pytest

from corvo.runtime.payload_keys import KEYS_MAX, read_payload_keys
from corvo.runtime.secret_file import BadSecretFile

KEY = base64.b64encode(b"k" * 32).decode()
OTHER = base64.b64encode(b"o" * 32).decode()


def a_file(folder: Path, text: str, mode: int = 0o600) -> str:
    path = folder / "keys"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_the_first_key_is_the_first_line(tmp_path: Path) -> None:
    keys = read_payload_keys(a_file(tmp_path, f"# rotated in May\nk2:{OTHER}\n\nk1: {KEY}\n"))
    assert [(key.id, key.secret) for key in keys] == [("k2", b"o" * 32), ("k1", b"k" * 32)]
    assert read_payload_keys("") == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "hold 0 keys"),
        (KEY, "line 1 .* is not ID:KEY with 32 bytes in base64"),
        (f"k1:{KEY[:-8]}", "line 1 .* is not ID:KEY"),
        (f"k1:{KEY}\nk 2:{KEY}", "line 2 .* is not ID:KEY"),
        (f"k1:{KEY}\nk1:{OTHER}", "two keys of one id"),
        ("".join(f"k{number}:{KEY}\n" for number in range(KEYS_MAX + 1)), "hold 101 keys"),
    ],
)
def test_what_is_no_key_file_is_refused_without_showing_it(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadSecretFile, match=words) as refused:
        read_payload_keys(a_file(tmp_path, text))
    assert KEY not in str(refused.value)


def test_a_file_that_everybody_reads_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSecretFile, match="open to everybody"):
        read_payload_keys(a_file(tmp_path, f"k1:{KEY}", 0o644))
