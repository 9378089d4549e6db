"""Secrets in files: private, of one line."""

from pathlib import Path

import pytest

from corvo.runtime.secret_file import BYTES_MAX, BadSecretFile, client_secret, read_secret_line
from corvo.runtime.settings import Settings


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (b"hunter2", 0o604, "the client secret .* is open to everybody; keep it to yourself: chmod 600"),
        (b" \n", 0o600, "holds no line of printable"),
        (b"a\nb", 0o600, "holds no line of printable"),
        (b"x" * (BYTES_MAX + 1), 0o600, f"is longer than {BYTES_MAX} bytes"),
        (None, 0, "cannot be read: no such file or directory; choose another --oidc-client-secret-file"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, content: bytes | None, mode: int, words: str) -> None:
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
        path.chmod(mode)

    with pytest.raises(BadSecretFile, match=words) as refused:
        client_secret(Settings(oidc_client_secret_file=str(path)))
    assert "hunter2" not in str(refused.value)


def test_the_secret_is_what_the_file_holds(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text(" s3cret\n")
    path.chmod(0o640)
    assert read_secret_line(str(path), "the secret", "--flag") == "s3cret"
    assert client_secret(Settings()) == ""
