"""`python -m benchmarks.http_servers.malformed NAME`: the catalogue of malformed requests, byte by byte, against one
server in front of the gateway over shards in memory. Prints a `Score` as JSON.

There are two counts. As written: the status and the end of the connection are those that the tests require of Hypercorn
with our fast path. Acceptable: the request is refused with 4xx, 501 or 505, or the connection is closed (or, if the
catalogue allows it, it is read as one request); no shard is called, nothing hangs, and the connection is closed or
still usable.
"""

import os
import socket
import subprocess
import sys
from typing import Literal, NamedTuple

import msgspec

from benchmarks.http_servers.candidates import BY_NAME
from benchmarks.load import LoadFailed
from benchmarks.processes import ROOT, python
from tests.gateway.catalogue import BAD_CHUNKS, CLOSED, KEPT, LENIENT, NOT_JSON, SMUGGLED
from tests.gateway.served import Served, chunked, enqueue

ANSWER_S = 2.0
RUN_S = 300.0
HIDDEN = "hidden"

Ending = Literal["kept", "closed", "either"]


class Case(NamedTuple):
    kind: str
    text: bytes
    statuses: frozenset[int]
    ending: Ending  # of the connection
    may_be_cut: bool = False  # closed without an answer
    may_be_served: bool = False  # read as one request: a shard may be called

    @property
    def shown(self) -> str:
        text = self.text if len(self.text) <= 110 else self.text[:80] + b"..." + self.text[-20:]
        return f"{self.kind} {text!r}"


class Outcome(NamedTuple):
    status: int  # 0: closed without an answer; -1: neither answered nor closed
    says_close: bool
    is_closed: bool
    next_status: int  # of a valid request after it on the same connection; 0: no answer
    asked: int  # calls that reached a shard before that
    has_hidden: bool  # the request inside the body was served
    is_alive: bool  # a new connection is served


class Score(msgspec.Struct):
    cases: int
    as_written: int
    acceptable: int
    differing: list[str]  # acceptable but not as written, with the answer
    failed: list[str]


def cases() -> list[Case]:
    return [
        *(Case("refused", text, frozenset({status}), "kept") for text, status in KEPT),
        *(Case("doubtful", text, frozenset({status}), "closed") for text, status in CLOSED),
        *(Case("chunks", chunked(body), frozenset({400}), "closed", may_be_cut=True) for body in BAD_CHUNKS),
        *(Case("smuggled", text, frozenset({200, 400, 405, 415}), "either") for text in SMUGGLED),
        *(Case("lenient", text, frozenset({200, 201, 400}), "either", may_be_served=True) for text in LENIENT),
        *(Case("json", enqueue(body), frozenset({400}), "kept") for body in NOT_JSON),
    ]


def is_acceptable(case: Case, heard: Outcome) -> bool:
    if heard.has_hidden or not heard.is_alive or heard.status < 0:
        return False
    if heard.asked and not case.may_be_served:
        return False
    if heard.status == 0:
        return heard.is_closed
    may_be_good = 200 in case.statuses
    is_refused = 400 <= heard.status < 500 or heard.status in (501, 505)
    is_in_step = heard.is_closed or heard.next_status == 201
    return is_in_step and (is_refused or (may_be_good and heard.status in case.statuses))


def is_as_written(case: Case, heard: Outcome) -> bool:
    if not is_acceptable(case, heard):
        return False
    if heard.status == 0:
        return case.may_be_cut
    if heard.status not in case.statuses:
        return False
    if case.ending == "kept":
        return heard.next_status == 201 and not heard.says_close
    if case.ending == "closed":
        return heard.is_closed and (heard.says_close or case.may_be_cut)
    return True


def scored(outcomes: list[tuple[Case, Outcome]]) -> Score:
    written = [is_as_written(*one) for one in outcomes]
    acceptable = [is_acceptable(*one) for one in outcomes]
    lines = [f"{case.shown}: {_told(heard)}" for case, heard in outcomes]
    return Score(
        len(outcomes),
        sum(written),
        sum(acceptable),
        [line for line, as_is, fine in zip(lines, written, acceptable, strict=True) if fine and not as_is],
        [line for line, fine in zip(lines, acceptable, strict=True) if not fine],
    )


def _told(heard: Outcome) -> str:
    status = {0: "no answer", -1: "hangs"}.get(heard.status, str(heard.status))
    ending = "closed" if heard.is_closed else f"kept, then {heard.next_status or 'no answer'}"
    extra = [f"{heard.asked} calls to shards"] if heard.asked else []
    extra += ["the hidden request was served"] if heard.has_hidden else []
    extra += [] if heard.is_alive else ["the server is gone"]
    return ", ".join([status, ending, *extra])


class _Line:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S)
        self._heard = b""
        self.is_closed = False

    def __enter__(self) -> "_Line":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def say(self, text: bytes) -> None:
        try:
            self._socket.sendall(text)
        except OSError:
            pass  # closed meanwhile; an earlier answer is still read

    def answer(self) -> tuple[int, bool]:
        """The status, and whether the answer announces the end of the connection. 0: closed, -1: silent."""
        while b"\r\n\r\n" not in self._heard:
            if not self._more():
                return (0 if self.is_closed else -1), False
        head, _, self._heard = self._heard.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").lower().split("\r\n")
        headers = dict(line.partition(": ")[::2] for line in lines)
        status, says_close = int(first.split()[1]), headers.get("connection") == "close"
        if status == 100:
            return self.answer()
        length = int(headers["content-length"]) if "content-length" in headers else None
        if length is None and status != 204 and (says_close or "transfer-encoding" not in headers):
            while self._more():
                pass
            self._heard = b""
            return status, says_close
        while len(self._heard) < (length or 0) and self._more():
            pass
        self._heard = self._heard[length or 0 :]
        return status, says_close

    def waits_for_end(self) -> bool:
        while self._more():
            self._heard = b""
        return self.is_closed

    def _more(self) -> bool:
        try:
            more = self._socket.recv(65536)
        except TimeoutError:
            return False
        except ConnectionError:
            more = b""
        self._heard += more
        self.is_closed = self.is_closed or not more
        return bool(more)


def tried(served: Served, case: Case) -> Outcome:
    before = len(served.shards.asked)
    with _Line(served.port) as line:
        line.say(case.text)
        status, says_close = line.answer()
        asked = len(served.shards.asked) - before
        next_status = 0
        if status > 0 and not line.is_closed and not (says_close and line.waits_for_end()):
            line.say(enqueue())
            next_status = max(line.answer()[0], 0)
        is_closed = line.is_closed
    has_hidden = any(HIDDEN in repr(ask) for _, ask in served.shards.asked[before:])
    try:
        with _Line(served.port) as line:
            line.say(enqueue())
            is_alive = line.answer()[0] == 201
    except OSError:
        is_alive = False
    return Outcome(status, says_close, is_closed, next_status, asked, has_hidden, is_alive)


def score(name: str) -> Score:
    """Runs in its own process: a server that is broken or does not stop ends with it."""
    command = python("-m", "benchmarks.http_servers.malformed", name)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=RUN_S, check=False)
    if done.returncode:
        raise LoadFailed((done.stderr.decode().strip().splitlines() or [f"{name}: no score"])[-1])
    return msgspec.json.decode(done.stdout, type=Score)


def main() -> None:
    served = Served(BY_NAME[sys.argv[1]].load().serve)
    found = scored([(case, tried(served, case)) for case in cases()])
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
