"""Executes a plan: sends its calls to the shards, round after round, until there is an answer.

Nearly every plan is one round. A long one, which clears a queue slice by slice, continues as long as its client waits,
and at most `ROUNDS_S`. A client that sends the request again continues where it stopped.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from corvo.endpoint import Answer, Endpoint, Plan
from corvo.model.errors import Refusal
from gateway.http.messages import Disconnected, Request
from gateway.shards.client import Shards
from gateway.shards.moved_jobs import ask_all

ROUNDS_S = 600.0  # all rounds of one request
COURTESY_S = 1.0  # all rounds together, once everything that was asked for has happened


async def carry_out(shards: Shards, plan: Plan, hung_up: Callable[[], Awaitable[None]] | None = None) -> Answer:
    """`hung_up` returns when the client has disconnected."""
    outcome: Answer | Plan = plan
    if plan.instead is None and not plan.wait_s:
        outcome = plan.conclude(await ask_all(shards, plan.calls))
        if isinstance(outcome, Answer):
            return outcome
    gone = None if hung_up is None else asyncio.ensure_future(hung_up())
    try:
        async with asyncio.timeout(ROUNDS_S):
            return await _go_on(shards, outcome, lambda: gone is not None and gone.done())
    except TimeoutError:
        raise Refusal("DEADLINE_EXCEEDED", f"not done within {ROUNDS_S:g} s; repeat the request to continue") from None
    finally:
        if gone is not None:
            gone.cancel()


async def _go_on(shards: Shards, outcome: Answer | Plan, is_gone: Callable[[], bool]) -> Answer:
    courtesy_ends = 0.0
    while not isinstance(outcome, Answer):
        if is_gone():
            raise Disconnected
        if outcome.instead is not None:
            courtesy_ends = courtesy_ends or asyncio.get_running_loop().time() + COURTESY_S
            outcome = await _ask_out_of_courtesy(shards, outcome, outcome.instead, courtesy_ends)
            continue
        if outcome.wait_s:
            await asyncio.sleep(outcome.wait_s)
        outcome = outcome.conclude(await ask_all(shards, outcome.calls))
    return outcome


async def _ask_out_of_courtesy(shards: Shards, plan: Plan, instead: Answer, ends: float) -> Answer | Plan:
    """The work is done, so a refusal now would be wrong: the answer is `instead`."""
    try:
        async with asyncio.timeout_at(ends):
            await asyncio.sleep(plan.wait_s)
            results = await ask_all(shards, plan.calls)
    except (Refusal, TimeoutError):
        return instead
    return plan.conclude(results)


class Looking:
    """What an endpoint that only reads shows, for other parts of the gateway: by its name, for the same principal."""

    def __init__(self, shards: Shards, endpoints: tuple[Endpoint, ...]) -> None:
        self._shards = shards
        self._endpoints = {endpoint.name: endpoint for endpoint in endpoints if endpoint.method == "GET"}

    async def __call__(self, name: str, request: Request, parameters: tuple[str, ...]) -> Any:
        endpoint = self._endpoints[name]
        assert endpoint.plan is not None, f"{name} has no plan"
        context = request.context.acting_for(request.principal) if endpoint.needs_principal else request.context
        query = None if endpoint.query is None else endpoint.query()
        return (await carry_out(self._shards, endpoint.plan(context, query, *parameters))).body
