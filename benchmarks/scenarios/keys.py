"""What a key costs: one job a request, and whole lives over the stream, with a key and with `--auth off`.

Two servers run, and the load goes to them in turn, round by round. Each request to the one shows its key; the other
asks for none and gets none.
"""

import secrets
from contextlib import ExitStack

import httpx

from benchmarks.figures import Findings, Goal, compared
from benchmarks.load import Load, LoadFailed, run_apart, with_header
from benchmarks.node import Node
from benchmarks.scenario import Scenario, Setup
from benchmarks.scenarios import enqueue_http, stream

GOAL = Goal("≥ 0.95 of the server without", least=0.95)
SHAPES = ("50 jobs a frame", "1 job a frame")
HEADER = "x-api-key"


def run(setup: Setup) -> Findings:
    with ExitStack() as running:
        password_file = setup.folder / "password"
        password = secrets.token_hex(16)
        password_file.touch(0o600)
        password_file.write_text(password)
        flags = ("--auth", "on", "--admin-password-file", str(password_file))
        both = (*setup.flags, "--rate-limit", "off")  # one client has all the load
        closed = running.enter_context(Node(setup.folder / "closed", *both, *flags))
        opened = running.enter_context(Node(setup.folder / "open", *both, "--auth", "off"))
        keys = {closed: _make_key(closed, password), opened: ""}
        rates: dict[str, dict[Node, list[float]]] = {
            name: {node: [] for node in keys} for name in ("POST /enqueue", *SHAPES)
        }
        advance = setup.watch.stage("with a key, and without authentication", setup.rounds * len(rates) * 2)
        for number in range(setup.rounds):
            for name, measured in rates.items():
                for node in (closed, opened) if number % 2 else (opened, closed):
                    measured[node].append(_measure(node, name, keys[node], setup.round_s))
                    node.await_settled(5.0)
                    advance(1)
    figures = [
        compared(name, measured[closed], "a second", measured[opened], "--auth off", GOAL)
        for name, measured in rates.items()
    ]
    return Findings(figures, {}, [])


def _make_key(node: Node, password: str) -> str:
    url = f"http://{node.address[0]}:{node.address[1]}/api/v1/auth/keys"
    told = httpx.post(url, json={"name": "benchmark", "role": "worker"}, headers={HEADER: password}, timeout=30.0)
    return str(told.raise_for_status().json()["api_key"])


def _measure(node: Node, name: str, key: str, seconds: float) -> float:
    if name in stream.SHAPES:
        return stream.apart(node.address, name, seconds, key)
    requests = enqueue_http.enqueues(node.settings.shards)
    if key:
        requests = [with_header(request, HEADER, key) for request in requests]
    tally = run_apart(Load(*node.address, requests, enqueue_http.CONNECTIONS, seconds))
    if tally.errors:
        raise LoadFailed(f"{name}: {tally.errors} errors, such as {tally.error_samples}")
    return tally.per_s


SCENARIO = Scenario("keys", "what a key costs", run)
