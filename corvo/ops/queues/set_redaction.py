"""Redaction of a queue: which values of its jobs' documents people do not see (`corvo/model/redaction.py`).

It is a record of access, in shard 0, because every gateway needs the paths of every queue at hand.
"""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.errors import Refusal, invalid
from corvo.model.limits import REDACTED_QUEUES_MAX, REDACTION_PATHS_MAX
from corvo.model.redaction import parse_path
from corvo.ops.queues.control import QueueChanged
from corvo.queries.queue_names import checked_name
from corvo.state.tables import Tables


class RedactionBody(Body):
    paths: Annotated[
        list[str],
        Meta(
            max_length=REDACTION_PATHS_MAX,
            description="such as `customer.email`, `items.*.iban`, `**.note`; none: only what is always hidden",
        ),
    ]


class SetRedaction(Operation, tag=30):
    queue: str
    paths: tuple[str, ...]

    result: ClassVar[Any] = int

    def apply(self, tables: Tables) -> int:
        """The version that holds it."""
        access = tables.access
        before = access.state.redaction.queues
        after = {name: paths for name, paths in before.items() if name != self.queue}
        if self.paths:
            if len(after) >= REDACTED_QUEUES_MAX:
                raise Refusal(
                    "TOO_MANY_REDACTIONS", f"{REDACTED_QUEUES_MAX} queues have paths of redaction already; remove some"
                )
            after[self.queue] = self.paths
        if after != before:
            access.put_redaction(msgspec.structs.replace(access.state.redaction, queues=after))
        return access.state.version


def _plan(context: PlanContext, body: RedactionBody, name: str) -> Plan:
    for number, path in enumerate(body.paths):
        try:
            parse_path(path)
        except ValueError as error:
            raise invalid(f"paths[{number}]", str(error)) from None
    paths = tuple(dict.fromkeys(body.paths))

    def conclude(results: list[int]) -> Answer:
        return Answer(200, QueueChanged("ok"), results[0])

    return Plan([(0, SetRedaction(checked_name(name), paths))], conclude)


ENDPOINTS = (
    Endpoint(
        name="set_redaction",
        access="redaction:write",
        method="POST",
        path="/queues/{name}/redaction",
        summary="Set which values of its jobs' documents people do not see; replaces the paths before",
        body=RedactionBody,
        example={"paths": ["customer.email", "items.*.iban"]},
        answers={200: QueueChanged},
        refusals=("TOO_MANY_REDACTIONS",),
        plan=_plan,
    ),
)
