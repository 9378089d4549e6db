"""The tables of what is recorded: every endpoint is in them, and every field that they name exists."""

from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from corvo.endpoint import Endpoint
from gateway.access.audited import (
    BODIES,
    PAYLOAD_READS,
    SETTINGS,
    Fields,
    change_of,
    in_path,
    is_change,
    query_of,
    target_of,
)
from gateway.app import ENDPOINTS

BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}
RECORDED = [endpoint for endpoint in ENDPOINTS if is_change(endpoint) or endpoint.name in PAYLOAD_READS]
SECRETS = {"payload", "callback_payload", "key", "password", "secret", "token", "api_key", "client_secret", "result"}


def asked_by(endpoint: Endpoint) -> Any:
    return endpoint.body or endpoint.query


@pytest.mark.parametrize("endpoint", [one for one in RECORDED if asked_by(one)], ids=lambda one: one.name)
def test_what_is_recorded_of_each_body_is_decided(endpoint: Endpoint) -> None:
    assert endpoint.name in BODIES, "say in gateway/access/audited.py what of its body may be recorded"


@pytest.mark.parametrize("name", BODIES)
def test_a_recorded_endpoint_exists_and_is_audited(name: str) -> None:
    assert BY_NAME[name] in RECORDED


def test_no_secret_is_among_the_shown_fields() -> None:
    for fields in [*BODIES.values(), *(view.fields for view in SETTINGS.values())]:
        assert not shown_in(fields) & SECRETS


def shown_in(fields: Fields) -> set[str]:
    return {*fields.shown, *(name for inside in fields.inside.values() for name in shown_in(inside))}


@pytest.mark.parametrize("name", [name for name, fields in BODIES.items() if fields.inside])
def test_a_struct_inside_a_body_is_looked_into(name: str) -> None:
    body = asked_by(BY_NAME[name])
    hints = get_type_hints(body)
    for field, inside in BODIES[name].inside.items():
        (kind,) = [
            one
            for one in (hints[field], *get_args(hints[field]))
            if isinstance(one, type) and issubclass(one, msgspec.Struct)
        ]
        known = {one.name for one in msgspec.structs.fields(kind)}
        assert known & {*inside.shown, *inside.hidden}


@pytest.mark.parametrize(("name", "view"), SETTINGS.items())
def test_settings_are_views_that_exist(name: str, view: Any) -> None:
    endpoint, shown = BY_NAME[name], BY_NAME[view.endpoint]
    (answer,) = shown.answers.values()
    kind = get_args(answer)[0] if view.listed_by else answer
    fields = {field.name for field in msgspec.structs.fields(kind)}

    assert shown.method == "GET" and shown.plan is not None
    assert {*view.fields.shown, *view.fields.hidden} <= fields
    assert not view.listed_by or view.listed_by in fields
    assert not view.made_as or all(view.made_as in made.__struct_fields__ for made in endpoint.answers.values())
    assert shown.path.count("{") == (0 if view.listed_by or view.endpoint == "sso_settings" else 1)
    if view.name is in_path:
        assert endpoint.path.count("{") >= shown.path.count("{")


def test_a_field_that_was_not_given_is_not_recorded() -> None:
    endpoint = BY_NAME["create_schedule"]
    body = msgspec.json.decode(b'{"name":"n","queue":"q","cron":"@daily","payload":{}}', type=endpoint.body)

    assert change_of(endpoint, body, "default") == {"name": "n", "queue": "q", "cron": "@daily"}


def test_a_long_list_is_counted() -> None:
    endpoint = BY_NAME["bulk"]
    ids = [f"s00_job_{number:026d}" for number in range(500)]
    body = msgspec.json.decode(msgspec.json.encode({"action": "cancel", "job_ids": ids}), type=endpoint.body)

    assert change_of(endpoint, body, "default")["job_ids"] == {"count": 500, "first": ids[:20]}


def test_details_are_bounded() -> None:
    endpoint = BY_NAME["bulk_get"]
    body = msgspec.json.decode(b'{"job_ids":["a"]}', type=endpoint.body)
    body.job_ids = ["ü" * 10_000] * 20

    assert len(msgspec.json.encode(change_of(endpoint, body, "default"))) < 20 * 600


@pytest.mark.parametrize("endpoint", [one for one in ENDPOINTS if "{" in one.path], ids=lambda one: one.name)
def test_the_parameters_of_every_path_are_named(endpoint: Endpoint) -> None:
    count = endpoint.path.count("{")
    found = target_of(endpoint, tuple(f"acme|{number}" for number in range(count)), "acme")

    assert list(found.values()) == [str(number) for number in range(count)]
    assert "name" not in found or not endpoint.path.startswith("/queues/")


def test_an_endpoint_without_a_query_records_none() -> None:
    assert query_of(BY_NAME["pause_queue"], None, "default") == ""
