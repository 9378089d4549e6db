"""Plays one scenario: a library on one side, a server of our own on the other, a proxy with faults between them."""

import os
import signal
import time
import uuid
from typing import Any

import httpx
import msgspec

from chaos.node import Node
from sdk.conformance.faults import FaultProxy
from sdk.conformance.harness import Harness
from sdk.conformance.scenario import Call, Scenario, Step, difference, fill, pick

PAUSE_S = 0.05  # between two looks
SERVER_S = 30.0
DEADLINE_MS = 10_000


class Differs(Exception):
    """The library does not do what the scenario expects."""


class Play:
    def __init__(self, harness: Harness, node: Node, proxy: FaultProxy, routes: dict[str, tuple[str, str]]) -> None:
        self._harness = harness
        self._node = node
        self._proxy = proxy
        self._routes = routes
        unique = uuid.uuid4().hex[:12]
        self._variables: dict[str, Any] = {"q": f"q-{unique}", "q2": f"r-{unique}", "worker": f"w-{unique}"}
        self._http = httpx.Client(base_url=f"{node.url}/api/v1", timeout=SERVER_S)

    def run(self, scenario: Scenario) -> None:
        self._proxy.clear()
        self._ask("open", url=self._proxy.url, deadline_ms=DEADLINE_MS)
        try:
            for number, step in enumerate(scenario.steps, 1):
                try:
                    self._step(step)
                except Differs as error:
                    raise Differs(f"step {number}: {error}") from None
        finally:
            self._http.close()
            self._harness.ask("close")

    def _ask(self, do: str, **fields: Any) -> Any:
        answer = self._harness.ask(do, **fields)
        if "error" in answer:
            raise Differs(f"{do}: {answer['error']}")
        return answer.get("answer")

    def _step(self, step: Step) -> None:
        if step.fault is not None:
            self._proxy.add(msgspec.convert(fill(msgspec.to_builtins(step.fault), self._variables), type(step.fault)))
        if step.work is not None:
            self._ask("work", **fill(msgspec.to_builtins(step.work), self._variables))
        if step.call is not None:
            self._until(step.call, self._by_library)
        if step.server is not None:
            self._until(step.server, self._by_runner)
        if step.kill:
            self._kill(step.kill)
        if step.events is not None:
            found = self._ask("events", **fill(step.events, self._variables))
            _check(fill(step.expect, self._variables), found)
        if step.drain:
            self._ask("drain")
        if step.faults_used is not None:
            _check(step.faults_used, self._proxy.used, "requests that met a fault")

    def _until(self, call: Call, ask: Any) -> None:
        """Once, or until it is as expected."""
        call = msgspec.convert(fill(msgspec.to_builtins(call), self._variables), Call)
        ends = time.monotonic() + call.within_s
        while True:
            answer = ask(call)
            try:
                self._compare(call, answer)
                break
            except Differs:
                if time.monotonic() >= ends:
                    raise
            time.sleep(PAUSE_S)
        for name, path in call.save.items():
            self._variables[name] = pick(answer["answer"], path)

    def _compare(self, call: Call, answer: dict[str, Any]) -> None:
        if call.refused is not None:
            _check(call.refused, answer.get("error"), f"the error of {call.name}")
        elif "error" in answer:
            raise Differs(f"{call.name} was refused: {answer['error']}")
        elif call.expect is not None:
            _check(call.expect, answer.get("answer"), f"the answer of {call.name}")

    def _by_library(self, call: Call) -> dict[str, Any]:
        fields: dict[str, Any] = {"name": call.name, "path": call.path, "query": call.query, "body": call.body}
        if call.deadline_ms:
            fields["deadline_ms"] = call.deadline_ms
        return self._harness.ask("call", **fields)

    def _by_runner(self, call: Call) -> dict[str, Any]:
        method, path = self._routes[call.name]
        values = iter(call.path)
        path = "/".join(next(values) if piece.startswith("{") else piece for piece in path.split("/"))
        reply = self._http.request(method, path, params=call.query, json=call.body)
        content = reply.json() if reply.content else None
        return {"answer": content} if reply.is_success else {"error": {"status": reply.status_code, **content}}

    def _kill(self, role: str) -> None:
        """Until the supervisor has started it anew."""
        for process in self._node.processes():
            if process.role.startswith(role):
                os.kill(process.pid, signal.SIGKILL)
        self._node.await_healthy(SERVER_S)


def _check(expected: Any, found: Any, at: str = "answer") -> None:
    if wrong := difference(expected, found, at):
        raise Differs(wrong)
