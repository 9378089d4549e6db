"""A secret of one line in a file: settings, command lines and logs hold the path of it, never its content.

Not part of the pure core, because it reads a file.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # settings.py stands beside this module
    from corvo.runtime.settings import Settings

BYTES_MAX = 4096


class BadSecretFile(ValueError):
    """The file of a secret cannot be used: a sentence with the reason and the remedy."""


def read_secret_line(path: str, what: str, flag: str) -> str:
    """Empty without a file. White space around the secret is ignored. `what`: such as `the client secret`."""
    if not path:
        return ""
    secret = read_private(path, what, flag).strip().decode("latin-1")
    if not secret or not secret.isascii() or not secret.isprintable():
        raise BadSecretFile(f"{what} {path} holds no line of printable ASCII characters")
    return secret


def read_private(path: str, what: str, flag: str, bytes_max: int = BYTES_MAX) -> bytes:
    """The content of a file that is not open to everybody. The group may read it: a Kubernetes volume has one."""
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(bytes_max + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadSecretFile(f"{what} {path} cannot be read: {reason}; choose another {flag}") from None
    if mode & 0o007:
        raise BadSecretFile(f"{what} {path} is open to everybody; keep it to yourself: chmod 600 {path}")
    if len(content) > bytes_max:
        raise BadSecretFile(f"{what} {path} is longer than {bytes_max} bytes")
    return content


def client_secret(settings: "Settings") -> str:
    """Of this server at the sign-on issuer; empty where it needs none."""
    return read_secret_line(settings.oidc_client_secret_file, "the client secret", "--oidc-client-secret-file")
