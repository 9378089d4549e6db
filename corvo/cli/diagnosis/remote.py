"""Questions to a running server, for `corvo doctor`. What the key may not see is said, not guessed."""

import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime

import httpx

from corvo import __version__
from corvo.cli.diagnosis import verdicts
from corvo.cli.diagnosis.verdicts import Check
from corvo.client.calls import ServerRefused
from corvo.client.http import Client, Unreachable

ANSWER_MS_GOOD = 500.0


def server_checks(client: Client) -> Iterator[Check]:
    begin = time.perf_counter()
    try:
        info = client.info()
    except (Unreachable, ServerRefused) as error:
        remedy = "start it, or name another one: --server, CORVO_SERVER, corvo context use"
        yield Check("server", "fail", str(error), remedy)
        return
    yield _reached(client.server, (time.perf_counter() - begin) * 1000)
    yield verdicts.versions(__version__, info.server_version)
    yield from _clock(client)
    try:
        view = client.cluster_status()
    except ServerRefused as refused:
        yield Check("health", "fail", f"{refused.message} ({refused.code})", "give a key that may read the cluster")
        return
    except Unreachable as error:
        yield Check("health", "fail", str(error), "see the gateway's log")
        return
    for judge in (
        verdicts.health,
        verdicts.leaders,
        verdicts.durability,
        verdicts.lists,
        verdicts.restarts,
    ):
        yield judge(view)


def _reached(server: str, span_ms: float) -> Check:
    found = f"{server} answers in {span_ms:.0f} ms"
    if span_ms > ANSWER_MS_GOOD:
        return Check("server", "warn", found, "look at its load and at the network between")
    return verdicts.ok("server", found)


def _clock(client: Client) -> Iterator[Check]:
    """By the header `Date`, which has whole seconds. A proxy may have set it; it stands for the server then."""
    try:
        with httpx.Client(verify=client.secure or False, timeout=5.0, trust_env=False) as http:
            before = time.time()
            answer = http.get(f"{client.server}/livez")
            after = time.time()
        theirs = parsedate_to_datetime(answer.headers["date"]).timestamp()
    except (httpx.HTTPError, KeyError, ValueError):
        return
    if theirs + 1 < before:
        yield verdicts.clock_difference(theirs + 1 - before)
    elif theirs > after:
        yield verdicts.clock_difference(theirs - after)
    else:
        yield verdicts.clock_difference(0.0)
