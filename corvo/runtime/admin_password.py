"""The admin password: the credential of a server that has no keys yet, and of its owner when all keys are lost.

It stands in a file. Settings, command lines and logs hold the path of that file, never its content: each gateway reads
it for itself. Not part of the pure core, because it reads a file.
"""

from typing import TYPE_CHECKING

from corvo.runtime.addresses import is_loopback
from corvo.runtime.secret_file import BadSecretFile, read_private

if TYPE_CHECKING:  # settings.py stands beside this module
    from corvo.runtime.settings import Settings

LENGTH_MIN = 16
LENGTH_MAX = 512
MAKE = "make one with `(umask 077; head -c 24 /dev/urandom | base64 > FILE)`"


class BadPassword(ValueError):
    """The file of the admin password cannot be used: a sentence with the reason and the remedy."""


def read_password(path: str) -> str | None:
    """None without a file. White space around the password is ignored."""
    if not path:
        return None
    try:
        content = read_private(path, "the admin password", "--admin-password-file")
    except BadSecretFile as error:
        raise BadPassword(str(error)) from None
    password = content.strip().decode("latin-1")
    if not LENGTH_MIN <= len(password) <= LENGTH_MAX:
        raise BadPassword(
            f"the admin password {path} has {len(password)} characters; it needs {LENGTH_MIN} to {LENGTH_MAX}: {MAKE}"
        )
    if not password.isascii() or not password.isprintable() or " " in password:
        raise BadPassword(f"the admin password {path} holds a space or a character that no HTTP header carries: {MAKE}")
    return password


def exposure(settings: "Settings") -> str:
    """Why a server with these settings would be open to every machine that reaches it: a sentence, or empty."""
    if settings.auth != "auto" or settings.admin_password_file or is_loopback(settings.bind):
        return ""
    return (
        f"--bind {settings.bind} is reachable from other machines, and there is no credential:"
        f" give --admin-password-file FILE ({MAKE}), --auth on if this server has API keys,"
        " or --auth off to let everybody in"
    )
