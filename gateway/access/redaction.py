"""What people see of documents: payloads, results, checkpoints, progress. Applied to every answer that shows one.

A worker's fetch is never touched. To see documents at all takes the permission `payloads:see`; without it they are
left out. Values with secret names are replaced (`corvo/model/redaction.py`), in every answer and for everybody. Only
`GET /jobs/{id}?reveal=true` shows a job as it is, to those with the permission `payloads:reveal`.

To search by payload is to see: who may try needles learns what is there.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from corvo.endpoint import Endpoint
from corvo.model.access import REVEAL_PAYLOADS, SEE_PAYLOADS, Principal
from corvo.model.access_records import RedactionRules
from corvo.model.events import EVENT_NAMES, EventKind
from corvo.model.namespaces import qualify
from corvo.model.redaction import Path, parse_path, redacted
from corvo.queries.batches import BatchView
from corvo.queries.batches_list import BatchesAnswer
from corvo.queries.events import EventsPage, EventView
from corvo.queries.job import JobQuery, JobView, StepView
from corvo.queries.jobs import JobsView
from corvo.queries.schedule_view import ScheduleView
from corvo.queries.search import FulltextAnswer, FulltextQuery, SearchAnswer, SearchBody

# Endpoints whose answers show documents, or depend on them.
SHOWING = frozenset(
    (
        *("get_job", "bulk_get", "search", "fulltext", "dead", "held", "bulk", "cluster_events"),
        *("get_batch", "batches"),
        *("get_schedule", "create_schedule", "update_schedule", "pause_schedule", "resume_schedule"),
    )
)
_PROGRESS = EVENT_NAMES[EventKind.PROGRESS]
_JOB_DOCUMENTS = ("payload", "progress", "checkpoint", "result")


class OpensLists(Protocol):
    @property
    def is_on(self) -> bool: ...

    def shown(self, document: Any, subject: str, field: str) -> Any: ...


class Curtain:
    """Between documents and people. `rules` gives the paths of queues as they are now."""

    def __init__(self, rules: Callable[[], RedactionRules] = RedactionRules, lists: "OpensLists | None" = None) -> None:
        """`lists` decrypts documents of the read database; those of shards come decrypted."""
        self._rules = rules
        self._lists = lists

    def admit(self, endpoint: Endpoint, asked: Any, principal: Principal) -> None:
        """Refuse a question that would show more than its principal may see."""
        if isinstance(asked, JobQuery) and asked.reveal:
            principal.require(REVEAL_PAYLOADS)
        searched = getattr(asked, "filter", asked)
        if _is_by_payload(searched) or isinstance(searched, FulltextQuery):
            principal.require(SEE_PAYLOADS)

    def draw(self, shown: Any, asked: Any, principal: Principal) -> None:
        """Hide what is in an answer, in place."""
        if isinstance(shown, JobView):
            if not (isinstance(asked, JobQuery) and asked.reveal):
                self._job(shown, principal)
        elif isinstance(shown, JobsView):
            for job in shown.jobs:
                self._job(job, principal)
        elif isinstance(shown, SearchAnswer):
            shown.sealed_unsearched = self._is_on and _is_by_payload(asked)
            for summary in shown.jobs:
                summary.payload = self._opened(summary.payload, summary.id, "payload")
                self._documents(summary, ("payload",), summary.queue, principal)
        elif isinstance(shown, FulltextAnswer):
            shown.sealed_unsearched = self._is_on
            for hit in shown.results:
                hit.payload = self._opened(hit.payload, hit.id, "payload")
                self._documents(hit, ("payload",), hit.queue, principal)
        elif isinstance(shown, ScheduleView):
            self._documents(shown, ("payload",), shown.queue, principal)
        elif isinstance(shown, BatchView):
            self._batch(shown, principal)
        elif isinstance(shown, BatchesAnswer):
            for batch in shown.batches:
                for callback in (batch.on_complete, batch.on_success, batch.on_failure):
                    if callback is not None:
                        callback.payload = self._opened(callback.payload, batch.id, "template")
                self._batch(batch, principal)
        elif isinstance(shown, EventsPage):
            for event in shown.events:
                self.event(event, principal)

    def event(self, event: EventView, principal: Principal) -> None:
        if event.type == _PROGRESS:
            self._documents(event, ("data",), event.queue, principal)

    def _job(self, job: JobView, principal: Principal) -> None:
        self._documents(job, _JOB_DOCUMENTS, job.queue, principal)
        chain = job.chain_config
        if chain is not None:
            steps: list[StepView | None] = [*chain.steps, chain.on_failure, chain.on_exit]
            for step in steps:
                if step is not None:
                    self._documents(step, ("payload",), step.queue, principal)

    def _batch(self, batch: BatchView, principal: Principal) -> None:
        for callback in (batch.on_complete, batch.on_success, batch.on_failure):
            if callback is not None:
                self._documents(callback, ("payload",), callback.queue, principal)

    @property
    def _is_on(self) -> bool:
        return self._lists is not None and self._lists.is_on

    def _opened(self, document: Any, subject: str, field: str) -> Any:
        is_stored = self._lists is not None and isinstance(document, msgspec.Raw)
        return self._lists.shown(document, subject, field) if is_stored and self._lists is not None else document

    def _documents(self, view: Any, fields: tuple[str, ...], queue: str, principal: Principal) -> None:
        sees = principal.may(SEE_PAYLOADS)
        paths = self._rules().queues.get(qualify(principal.namespace, queue), ())
        for field in fields:
            document = getattr(view, field)
            if document is None:
                continue
            raw = bytes(document) if isinstance(document, msgspec.Raw) else msgspec.json.encode(document)
            setattr(view, field, msgspec.Raw(redacted(raw, _parsed(paths))) if sees else None)


@lru_cache(maxsize=2048)
def _parsed(paths: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(map(parse_path, paths))


def _is_by_payload(asked: Any) -> bool:
    return isinstance(asked, SearchBody) and bool(asked.payload_contains or asked.payload_jq)
