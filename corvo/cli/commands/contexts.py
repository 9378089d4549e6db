"""Contexts: servers by name, each with its key and its certificates, in one file of the user.

The file is `contexts.json` in `$XDG_CONFIG_HOME/corvo` (`~/.config/corvo`), readable by the user alone, because it may
hold keys. A key goes only to the server of its own context: whoever names another server with --server or CORVO_SERVER
also names its key.
"""

import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
VARIABLE = "CORVO_CONTEXT"
FILE_BYTES_MAX = 1 << 20
PRIVATE = 0o600


class BadContexts(Exception):
    """The file, or what is asked of it, is wrong. Its text says what to do."""


class ServerContext(NamedTuple):
    server: str
    api_key: str | None = None
    api_key_file: str | None = None  # read at each use, so that a key can be replaced
    ca_cert: str | None = None


class ServerContexts(NamedTuple):
    current: str  # empty: none
    by_name: Mapping[str, ServerContext]

    def find(self, name: str) -> ServerContext:
        if name not in self.by_name:
            known = ", ".join(sorted(self.by_name)) or "none"
            raise BadContexts(f"there is no context {name!r}; known: {known}; corvo context add makes one")
        return self.by_name[name]

    def with_context(self, name: str, context: ServerContext) -> "ServerContexts":
        """The first one is current from the start."""
        if not NAME.fullmatch(name):
            raise BadContexts(f"{name!r} is no name of a context: use letters, digits, dots, dashes, at most 63")
        return ServerContexts(self.current or name, {**self.by_name, name: context})

    def without(self, name: str) -> "ServerContexts":
        self.find(name)
        rest = {other: context for other, context in self.by_name.items() if other != name}
        return ServerContexts("" if self.current == name else self.current, rest)

    def using(self, name: str) -> "ServerContexts":
        self.find(name)
        return ServerContexts(name, self.by_name)


class Source(NamedTuple):
    """Where a command gets its server from."""

    flag: str | None  # --server
    variable: str | None  # CORVO_SERVER or CORVO_URL
    context_flag: str | None  # --context
    context_variable: str | None  # CORVO_CONTEXT


def choose(source: Source, contexts: ServerContexts) -> ServerContext | None:
    """Flags win over variables, variables over the current context. None: the default server."""
    if source.flag and source.context_flag:
        raise BadContexts("--server and --context exclude each other")
    if source.flag:
        return ServerContext(source.flag)
    if source.context_flag:
        return contexts.find(source.context_flag)
    if source.variable:
        return ServerContext(source.variable)
    name = source.context_variable or contexts.current
    return contexts.find(name) if name else None


def path_of(environ: Mapping[str, str]) -> Path:
    folder = environ.get("XDG_CONFIG_HOME", "")
    return (Path(folder) if folder.startswith("/") else Path.home() / ".config") / "corvo" / "contexts.json"


def read(path: Path) -> ServerContexts:
    """No file is no contexts. A file that others can read is refused, as ssh refuses such a key."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read(FILE_BYTES_MAX)
    except FileNotFoundError:
        return ServerContexts("", {})
    except OSError as error:
        raise BadContexts(f"{path} cannot be read: {error.strerror}") from None
    if mode & 0o077:
        raise BadContexts(f"{path} may hold keys and others can read it (mode {mode:o}); chmod 600 {path}")
    try:
        return _parsed(json.loads(content))
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        raise BadContexts(f"{path} is damaged; remove it and add the contexts again") from None


def write(path: Path, contexts: ServerContexts) -> None:
    """Beside, and renamed when it is whole. Never readable by others, not even for a moment."""
    named = {
        name: {key: value for key, value in one._asdict().items() if value} for name, one in contexts.by_name.items()
    }
    text = json.dumps({"current": contexts.current, "contexts": named}, indent=2) + "\n"
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside.touch(PRIVATE, exist_ok=False)
        beside.write_text(text)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise BadContexts(f"{path} cannot be written: {error.strerror}") from None


def _parsed(content: Any) -> ServerContexts:
    by_name = {}
    for name, fields in content["contexts"].items():
        known = {key: fields[key] for key in ServerContext._fields if fields.get(key)}
        if not NAME.fullmatch(name) or not all(isinstance(value, str) for value in known.values()):
            raise ValueError(name)
        by_name[name] = ServerContext(**known)
    current = content["current"]
    return ServerContexts(current if current in by_name else "", by_name)
