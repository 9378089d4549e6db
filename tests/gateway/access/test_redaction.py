"""The curtain between documents and people, and that no endpoint goes round it."""

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from corvo.model.access import ANONYMOUS, Permission, Principal, built_in
from corvo.model.access_records import RedactionRules
from corvo.model.errors import Refusal
from corvo.queries.batches import BatchView, CallbackView
from corvo.queries.events import EventView
from corvo.queries.job import ChainView, JobQuery, JobView, StepView
from corvo.queries.search import FulltextHit, FulltextQuery, JobSummary, SearchAnswer, SearchBody
from gateway.access.redaction import SHOWING, Curtain
from gateway.app import ENDPOINTS

RULES = RedactionRules({"mail": ("customer.email",), "acme|mail": ("phone",)})
CURTAIN = Curtain(lambda: RULES)
PAYLOAD = b'{"customer":{"email":"a@b.c"},"phone":"123","token":"t"}'
BLIND = built_in("dashboard", "key", "readonly")
OPERATOR = built_in("ops", "key", "operator")
BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}


def a_summary() -> JobSummary:
    return JobSummary("j", "mail", "dead", msgspec.Raw(PAYLOAD), 2, 1, 3, "2026-01-01T00:00:00Z")


def payload(principal: Principal) -> Any:
    answer = SearchAnswer([a_summary()], 1, True, False, None, 1.0, 1.0)
    CURTAIN.draw(answer, SearchBody(), principal)
    shown = answer.jobs[0].payload
    return None if shown is None else msgspec.json.decode(shown)


def test_each_queue_has_its_paths_and_each_tenant_its_queues() -> None:
    hidden = "(redacted)"
    assert payload(OPERATOR) == {"customer": {"email": hidden}, "phone": "123", "token": hidden}
    assert payload(ANONYMOUS)["token"] == hidden, "also for admins"
    tenant = OPERATOR.within("acme")
    assert payload(tenant) == {"customer": {"email": "a@b.c"}, "phone": hidden, "token": hidden}
    assert payload(BLIND) is None


@pytest.mark.parametrize(
    "searched", [SearchBody(payload_contains="x"), SearchBody(payload_jq=".a"), FulltextQuery("x")]
)
def test_who_may_not_see_payloads_may_not_search_in_them(searched: Any) -> None:
    with pytest.raises(Refusal, match="payloads:see"):
        CURTAIN.admit(BY_NAME["search"], searched, BLIND)
    CURTAIN.admit(BY_NAME["search"], searched, OPERATOR)
    CURTAIN.admit(BY_NAME["search"], SearchBody(error_contains="x"), BLIND)


def test_one_job_is_revealed_to_those_who_may_and_ask() -> None:
    with pytest.raises(Refusal, match="payloads:reveal"):
        CURTAIN.admit(BY_NAME["get_job"], JobQuery(reveal=True), OPERATOR)
    CURTAIN.admit(BY_NAME["get_job"], JobQuery(reveal=True), ANONYMOUS)
    view = msgspec.structs.replace(_a_job(), payload=msgspec.Raw(PAYLOAD))
    CURTAIN.draw(view, JobQuery(reveal=True), ANONYMOUS)
    assert bytes(view.payload) == PAYLOAD
    CURTAIN.draw(view, JobQuery(), ANONYMOUS)
    assert b"(redacted)" in bytes(view.payload)


def test_events_show_progress_like_any_document() -> None:
    event = EventView(1, 0, "progress", 1, "j", "mail", msgspec.Raw(b'{"token":"t"}'))
    CURTAIN.event(event, OPERATOR)
    assert bytes(event.data) == b'{"token":"(redacted)"}'
    CURTAIN.event(event, BLIND)
    assert event.data is None


def _a_job() -> JobView:
    return JobView("j", "mail", "dead", None, 2, 1, 3, "none", 0, 0, "2026-01-01T00:00:00Z")


def test_the_steps_of_a_chain_and_callbacks_are_documents_too() -> None:
    curtain = Curtain()
    step = StepView("mail", msgspec.Raw(PAYLOAD))
    view = msgspec.structs.replace(_a_job(), chain_config=ChainView([step]))
    curtain.draw(view, JobQuery(), OPERATOR)
    assert b'"token":"(redacted)"' in bytes(step.payload)
    callback = CallbackView("mail", msgspec.Raw(PAYLOAD))
    batch = BatchView("b", "open", 0, 0, 0, 0, 0, 0, "2026", on_complete=callback)
    curtain.draw(batch, None, BLIND)
    assert callback.payload is None


def _structs(kind: Any) -> Iterator[type]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
        for hint in get_type_hints(kind).values():
            yield from _structs(hint)
    for inner in get_args(kind):
        yield from _structs(inner)


DOCUMENTS = (JobView, StepView, JobSummary, FulltextHit, CallbackView)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_an_endpoint_that_shows_documents_is_behind_the_curtain(endpoint: Any) -> None:
    shows = any(kind in DOCUMENTS for answer in endpoint.answers.values() for kind in _structs(answer))
    assert not shows or endpoint.name in SHOWING, "add it to SHOWING in gateway/access/redaction.py"


def test_a_custom_role_may_see_and_not_reveal() -> None:
    role = (Permission("jobs", ("read",)), Permission("payloads", ("see",)))
    support = Principal(name="s", kind="key", roles=("support",), permissions=role)
    assert payload(support)["token"] == "(redacted)"
    with pytest.raises(Refusal):
        CURTAIN.admit(BY_NAME["get_job"], JobQuery(reveal=True), support)
