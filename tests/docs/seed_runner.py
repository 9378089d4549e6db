"""Runs the steps of a row of `docs/seeds` against a server: HTTP, the shell, and read.db as a file.

A step that does not do what the row says raises `Unlike`. Everything else that goes wrong, such as a server that is
gone, is an error of its own and proves nothing about the row.
"""

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from docs.seeds.rows import ABSENT, Http, Row, Shell, Sql, Step, Table
from tests.docs.pages import ROOT

LINE_S = 20.0
REQUEST_S = 10.0
LISTS = re.compile(r"GET /api/v1/(queues|workers|schedules|dead|held|batches|search/\w+|jobs/(dead|held))(\?|$)")
FILTERS = re.compile(r"POST /api/v1/jobs/(search|bulk)$")


class Unlike(AssertionError):
    """What came is not what the row says."""


class Terminal:
    """One user at one server: a client for requests, a folder with a `corvo` in the path, and what was kept."""

    def __init__(self, url: str, data_dir: Path, folder: Path) -> None:
        self._url = url
        self._data_dir = data_dir
        self._folder = folder
        self._client = httpx.Client(base_url=url, timeout=REQUEST_S)
        programs = folder / ".bin"
        programs.mkdir()
        for name, command in (("python", ""), ("corvo", " -m corvo.cli.main")):
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}"{command} "$@"\n')
            program.chmod(0o755)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("CORVO_")}
        self._environ = {
            **environ,
            "PATH": f"{programs}:{environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "CORVO_SERVER": url,
            "NO_COLOR": "1",
        }
        self._kept: dict[str, str] = {}

    def close(self) -> None:
        self._client.close()

    def prepare(self, row: Row) -> None:
        """The set-up must succeed, also of a row that is not to work."""
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        self._kept = {
            "URL": self._url,
            "TOMORROW": tomorrow.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "DATE": tomorrow.strftime("%Y-%m-%d"),
        }
        for queue in row.fresh:
            gone = self._client.delete(f"/api/v1/queues/{queue}?confirm=true&force=true")
            assert gone.status_code in (200, 204, 404), gone.text
        for step in row.before:
            try:
                self._do(step)
            except Unlike as unlike:
                raise RuntimeError(f"the set-up of {row.id} failed: {unlike}") from unlike

    def run(self, row: Row) -> None:
        for step in row.run:
            if not isinstance(step, Http) or LISTS.match(step.request) or FILTERS.match(step.request):
                self._await_read_db()
            self._do(step)

    def _await_read_db(self) -> None:
        """The lists of the next step show all that happened before."""
        seen = self._client.post("/api/v1/jobs/search", json={"consistent": True, "limit": 1})
        assert seen.status_code == 200, seen.text

    def _do(self, step: Step) -> None:
        match step:
            case Http():
                self._request(step)
            case Shell():
                self._type(step)
            case Sql():
                self._ask(step)
            case Table():
                self._look(step)

    def _request(self, step: Http) -> None:
        method, path = self._filled(step.request).split(" ", 1)
        headers = {"content-type": "application/json"} if step.body else {}
        headers |= {name: self._filled(value) for name, value in step.sends.items()}
        body = self._filled(step.body).encode()
        with self._client.stream(method, path, content=body, headers=headers) as answer:
            if not step.is_stream:
                answer.read()
            told = "a stream" if step.is_stream else answer.text[:2_000]
            if answer.status_code != step.status:
                raise Unlike(f"{step.request} was answered with {answer.status_code}, not {step.status}: {told}")
            for name, value in step.headers.items():
                if value not in answer.headers.get(name, ""):
                    raise Unlike(f"{step.request} has {name}: {answer.headers.get(name)!r}, which lacks {value!r}")
        if isinstance(step.answer, str):
            if step.answer not in answer.text:
                raise Unlike(f"{step.request} does not contain {step.answer!r}: {told}")
        elif step.answer is not None or step.keep:
            content = answer.json()
            if reason := difference(... if step.answer is None else self._filled_in(step.answer), content):
                raise Unlike(f"{step.request}: {reason}; the answer is {told}")
            for name, where in step.keep.items():
                self._kept[name] = str(_part(content, where))

    def _type(self, step: Shell) -> None:
        line = step.line.replace("http://localhost:8080", self._url)
        code, output, complaints = self._finished(line)
        if code != step.code:
            raise Unlike(f"{step.line} ended with {code}:\n{output}{complaints}")
        for piece in map(self._filled, step.prints):
            if piece not in output:
                raise Unlike(f"{step.line} does not print {piece!r}:\n{output}{complaints}")
        if step.complains not in complaints:
            raise Unlike(f"{step.line} does not complain of {step.complains!r}:\n{complaints}")

    def _finished(self, line: str) -> tuple[int, str, str]:
        """Exit code and both outputs. A line that does not end is ended, with all that it has started."""
        process = subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=self._folder,
            env={**self._environ, **self._kept},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            output, complaints = process.communicate(timeout=LINE_S)
        except subprocess.TimeoutExpired as late:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise Unlike(f"{line} had not ended after {LINE_S:g} s") from late
        return process.returncode, output, complaints

    def _ask(self, step: Sql) -> None:
        rows = self._answers(self._filled(step.query))
        if reason := difference(self._filled_in(list(map(list, step.rows))), rows):
            raise Unlike(f"{step.query}: {reason}; the rows are {rows}")

    def _look(self, step: Table) -> None:
        columns = self._answers(f"select name from pragma_table_xinfo('{step.name}') where hidden <> 1")
        columns = columns or self._answers(f"select name from pragma_index_info('{step.name}')")
        missing = [name for name in step.columns.split() if [name] not in columns]
        if missing or not columns:
            raise Unlike(f"{step.name} of read.db lacks {missing or 'itself'}; it has {columns}")

    def _answers(self, query: str) -> list[list[Any]]:
        path = (self._data_dir / "read.db").resolve()
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return [list(row) for row in connection.execute(query)]
        except sqlite3.OperationalError as fault:
            raise Unlike(f"{query}: {fault}") from fault
        finally:
            connection.close()

    def _filled(self, text: str) -> str:
        return re.sub(r"\$([A-Z_]+\b)", lambda found: self._kept.get(found[1], found[0]), text)

    def _filled_in(self, expected: Any) -> Any:
        match expected:
            case str():
                return self._filled(expected)
            case dict():
                return {self._filled(name): self._filled_in(value) for name, value in expected.items()}
            case list() | tuple():
                return [self._filled_in(value) for value in expected]
        return expected


def _part(content: Any, where: str) -> Any:
    for name in where.split("."):
        content = content[int(name)] if isinstance(content, list) else content[name]
    return content


def difference(expected: Any, actual: Any) -> str:
    """Why the two differ; empty when they fit."""
    if expected is ...:
        return ""
    if isinstance(expected, type):
        return "" if isinstance(actual, expected) else f"{actual!r} is no {expected.__name__}"
    if isinstance(expected, dict):
        return _object_difference(expected, actual)
    if isinstance(expected, list):
        return _list_difference(expected, actual)
    return "" if type(expected) is type(actual) and expected == actual else f"{actual!r} is not {expected!r}"


def _object_difference(expected: dict[str, Any], actual: Any) -> str:
    if not isinstance(actual, dict):
        return f"{actual!r} is no object"
    for name, value in expected.items():
        if value is ABSENT:
            if actual.get(name) is not None:
                return f"there is {name}: {actual[name]!r}"
            continue
        if name not in actual:
            return f"there is no {name}"
        if reason := difference(value, actual[name]):
            return f"{name}: {reason}"
    return ""


def _list_difference(expected: Sequence[Any], actual: Any) -> str:
    if not isinstance(actual, list):
        return f"{actual!r} is no list"
    if expected and expected[0] is ...:
        missing = [value for value in expected[1:] if all(difference(value, item) for item in actual)]
        return f"there is no {missing[0]!r}" if missing else ""
    if len(expected) != len(actual):
        return f"{len(actual)} instead of {len(expected)} elements"
    return next((reason for pair in zip(expected, actual, strict=True) if (reason := difference(*pair))), "")
