"""`python -m docs.generate`: write docs/reference from the code.

Every page is a pure function of the code it describes; `pages` gathers them, and only `main` touches the disk.
`tests/docs/test_reference_is_fresh.py` fails when a page differs from what this module makes. Sentences that the code
does not hold stand here, each table checked against the code it explains: a new code or route without its sentence
ends the run. Three pages are not ours: `python -m benchmarks.report` writes `benchmarks.md`, `python -m
sdk.conformance` the table of `sdks.md`, and people write `payload-jq.md`, whose examples have tests of their own.
"""

import ast
import importlib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from prometheus_client.parser import text_string_to_metric_families
from typer.main import get_command
from typer.testing import CliRunner

from corvo import ops, queries
from corvo.cli.main import app
from corvo.endpoint import Endpoint
from corvo.model import limits
from corvo.model.access import OPEN
from corvo.model.errors import RETRYABLE, STATUS
from corvo.model.lifecycle import BIRTH_STATES, RULES, SETTLED, STATE_NAMES, State, Verb
from corvo.queries.cluster import HealthReport, Histogram, ReplicaStatus, ShardStatus
from corvo.queries.queues import QueueView
from corvo.runtime import settings
from corvo.state import keys
from docs import llms
from docs.security.page import security
from docs.seeds.page import seeds
from gateway.console.assets import Console
from gateway.field_notes import note_of
from gateway.http.messages import ErrorBody
from gateway.metrics import Metrics
from gateway.openapi import refusals_of
from gateway.pages import Pages
from gateway.routes import API
from gateway.search.lag import Lag

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
HELP_WIDTH = 100

ENDPOINTS: tuple[Endpoint, ...] = (*ops.ENDPOINTS, *queries.ENDPOINTS)

PAGE_ROUTES = {
    "/": "redirects a browser to `/ui/`, or to `/docs` where the console is not built",
    "/ui": "redirects to `/ui/`",
    "/ui/{path:path}": "[the console](../how-to/use-the-console.md) and its files",
    "/docs": "this API for people: an index, a search, an example of every request and answer",
    "/openapi.json": "this API as OpenAPI 3.1, for tools",
    "/llms.txt": "an index of this API for language models",
    "/metrics": "figures for Prometheus; see [metrics](metrics.md)",
    "/api/v1/metrics": "the same as `/metrics`, for older dashboards",
    "/livez": "200 while every process of the node sends heartbeats, else 503; queries no shard. For a liveness probe",
    "/healthz": "503 when the node is `unavailable`, else 200; `health` has the level and its reasons, `shards` the "
    "state and leader of each shard",
    "/readyz": "200 while the node is not `unavailable`, read.db can be read and the server is not stopping; in the "
    "first 15 s, read.db must also be at most 10 s behind. `?verbose` shows what the node waits for. "
    "For a readiness probe",
}

STATES = {
    State.PENDING: "waits for a worker",
    State.ACTIVE: "a worker holds it under a lease",
    State.COMPLETED: "done; kept with its result",
    State.RETRYING: "an attempt failed; the next one waits for its backoff",
    State.DEAD: "no attempt is left; kept with its errors",
    State.CANCELLED: "stopped by a client, or because a job that it depends on was lost",
    State.SCHEDULED: "waits for its time, or for other jobs",
    State.HELD: "waits to be approved or rejected",
}

# Only verbs that some operation uses; `_check_diagram` checks it.
DIAGRAM = """\
 scheduled ──promote──▶ pending ──claim──▶ active ──complete──▶ completed
                         ▲   ▲               │
                         │   └────reclaim────┤   the lease is over, attempts are left
                         │                   │
                      promote                ├──retry_later──▶ retrying ──┐
                         │                   │                            │
                         └───────────────────┼────────────────────────────┘
                                             │
                                             ├──snooze──▶ scheduled   no attempt is used
                                             │
                                             └──give_up──▶ dead

 hold: scheduled, pending, active, retrying → held; approve: held → pending; reject: held → dead
 cancel: scheduled, pending, active, retrying, held → cancelled
 expire: the same states → dead; forsake: scheduled → dead, when a dependency is lost
 run_again: dead, cancelled, completed, scheduled → pending; requeue: dead → pending
 reschedule: pending, retrying, scheduled → scheduled
"""

ERRORS = {
    "PARSE_ERROR": "The body is not JSON, not UTF-8, or nested too deeply.",
    "VALIDATION_ERROR": "The JSON is well formed, but a field is unknown, missing or out of range; `field` names it.",
    "BAD_REQUEST": "The request is malformed: two lengths, a bad URL, or versions that do not match.",
    "SIGN_ON_FAILED": "The sign-on was not begun by this browser, is too old, or the issuer refused it. Begin again.",
    "SIGN_ON_UNAVAILABLE": "The sign-on issuer cannot be reached, so that no token can be verified.",
    "UNAUTHORIZED": "No credential, or one that is unknown, disabled or expired. Send `X-API-Key` or a bearer token.",
    "FORBIDDEN": "The key or user lacks the permission that `error` names, or the queue is outside its scope.",
    "NOT_FOUND": "No route has this path; `/docs` lists all routes.",
    "JOB_NOT_FOUND": "No job has this id.",
    "QUEUE_NOT_FOUND": "No queue has this name: nothing was ever enqueued there, or it was deleted.",
    "BATCH_NOT_FOUND": "No batch has this id, or it has ended and was deleted.",
    "BULK_NOT_FOUND": "No bulk operation has this id, or it has ended and was deleted.",
    "SCHEDULE_NOT_FOUND": "No schedule has this id or name.",
    "WORKER_NOT_FOUND": "No worker with this id holds a job or waits for one, nor did so within `--worker-timeout`.",
    "SCHEDULE_EXISTS": "Another schedule has this name. Change that one, or choose another name.",
    "KEY_NOT_FOUND": "No API key with this hash exists in a namespace whose keys the principal manages.",
    "ROLE_NOT_FOUND": "No role has this name, neither built in nor custom.",
    "NAMESPACE_NOT_FOUND": "No namespace has this name, or the principal cannot see it.",
    "KEY_EXISTS": "The key that the request brings is in use. Choose another, or let the server make one.",
    "ROLE_IN_USE": "Keys have this as their role, or a group is mapped to it. Give them another one first.",
    "NAMESPACE_IN_USE": "The namespace has API keys, or it is being deleted.",
    "PAYLOAD_KEY_MISSING": "This node lacks the key of a payload, or its stored bytes were changed.",
    "TOO_MANY_REDACTIONS": "Too many queues have paths of redaction. Remove those of queues that are gone.",
    "TOO_MANY_KEYS": "The cluster, or the namespace, has the maximum number of API keys. Delete some.",
    "TOO_MANY_ROLES": "The cluster has the maximum number of custom roles, or the key that of roles. Delete some.",
    "QUOTA_EXCEEDED": "The namespace may not store more jobs, bytes or queues. Remove some, or raise its quotas.",
    "TOO_MANY_NAMESPACES": "The cluster has the maximum number of namespaces. Delete some.",
    "TOO_MANY_SCHEDULES": "The shard has the maximum number of schedules. Delete some, or use jobs that enqueue jobs.",
    "UNIQUE_CONFLICT": "Another job holds the unique key that this one needs to run again; `error` names it.",
    "JOB_MOVED": "Internal: the job is on another shard, and the gateway asks that one. Clients never see it.",
    "BATCH_SEALED": "The batch accepts no more jobs. Create another one.",
    "METHOD_NOT_ALLOWED": "The path exists, but not for this method.",
    "REQUEST_TIMEOUT": "The body did not arrive in time.",
    "WRONG_STATE": "The job is in a state that does not allow this; `error` names the state.",
    "MEMBERSHIP_REFUSED": "The shard's group cannot make this membership change now; `error` says why.",
    "LEASE_LOST": "The lease of this `lease_token` has ended. Stop working on the job: another worker may have it.",
    "PAYLOAD_TOO_LARGE": "The payload, or another document of the job, is larger than the server's limit.",
    "BODY_TOO_LARGE": "The whole body is larger than any request may be.",
    "URI_TOO_LONG": "The URL is too long.",
    "UNSUPPORTED_MEDIA_TYPE": "The content type is not `application/json`, or the body is compressed.",
    "HEADERS_TOO_LARGE": "There are too many headers, or they are too large.",
    "OVERLOADED": "A bounded queue is full. Nothing was changed; retry after `retry_after_ms`.",
    "RATE_LIMITED": "This client has sent more requests than its limit allows, or too many wrong credentials. "
    "Nothing was changed; retry after `retry_after_ms`.",
    "INTERNAL_ERROR": "A bug; see the gateway's log.",
    "UNHEALTHY": "`/healthz` or `/readyz` failed; `error` lists every reason.",
    "SHARD_UNAVAILABLE": "The shard was not reachable before the deadline, and the request was never sent to it.",
    "OUTCOME_UNKNOWN": "The shard was lost while the request was in flight and did not come back in time: the request "
    "may or may not have been applied.",
    "READ_DB_UNAVAILABLE": "read.db is being rebuilt, or did not catch up in time. Jobs themselves are not affected.",
    "AUDIT_UNAVAILABLE": "The change could not be recorded in the audit log, so it was not made: shard 0, which keeps "
    "the log, has no leader at the moment or is overloaded. Send the request again.",
    "ACCESS_UNAVAILABLE": "Whether the credential is good cannot be known: shard 0 has not answered for 30 seconds. "
    "Nothing was changed.",
    "NOT_LEADER": "The shard has no leader at the moment. Nothing was changed.",
    "DEADLINE_EXCEEDED": "No answer came in time. The change may or may not have been made: repeat an ack or fail with "
    "its lease token; check before you enqueue again.",
    "HTTP_VERSION_NOT_SUPPORTED": "The server speaks HTTP/1.1 and 1.0; HTTP/2 only over TLS.",
}

# Bounds that are defined beside the code they protect: file, name, meaning.
OTHER_LIMITS = (
    ("gateway/app.py", "REQUESTS_MAX", "requests that one gateway serves at once"),
    ("gateway/http/messages.py", "HEADERS_MAX", "headers of a request"),
    ("gateway/http/messages.py", "HEADER_BYTES_MAX", "bytes of all headers together"),
    ("gateway/http/messages.py", "PATH_BYTES_MAX", "bytes of the URL"),
    ("gateway/http/messages.py", "BODY_TIMEOUT_S", "time in which a body must arrive"),
    ("gateway/http/messages.py", "HTTP2_STREAMS_MAX", "concurrent requests on one HTTP/2 connection"),
    ("gateway/http/http2.py", "RESETS_MAX", "requests that an HTTP/2 connection may reset beyond those answered"),
    ("gateway/http/http2.py", "WINDOW_S", "how long an HTTP/2 answer waits for a client that does not read"),
    ("gateway/__main__.py", "ASK_S", "how long a request may wait for its shard"),
    ("corvo/calls.py", "CALLS_OPEN_MAX", "open calls from a gateway to one shard"),
    ("gateway/shards/health_scale.py", "LAG_MS_MAX", "lag of read.db beyond which `/readyz` fails after a start"),
    ("gateway/search/lag.py", "WAIT_MS_MAX", "how long `consistent` waits for read.db"),
    ("corvo/queries/search.py", "LIMIT_MAX", "jobs on one page of a search"),
    ("corvo/queries/audit_logs.py", "LIMIT_MAX", "requests on one page of the audit log"),
    (
        "corvo/queries/audit_logs.py",
        "OFFSET_MAX",
        "newest requests that a page of the audit log may leave out",
    ),
    (
        "gateway/access/audit_writer.py",
        "KEPT_MAX",
        "records that a gateway keeps while the audit log has no leader",
    ),
    ("gateway/access/audit_writer.py", "KEPT_S", "seconds that it keeps them"),
    ("shards/intake/admission.py", "CALLS_WAITING_MAX", "operations that wait for the log of one shard"),
    ("shards/intake/admission.py", "CALLS_PARKED_MAX", "fetches that wait for a job at one shard"),
    ("shards/feed.py", "OUTBOX_ENTRIES_MAX", "entries that a shard keeps for a mirror that is behind"),
)


def pages() -> dict[str, str]:
    """File name → text."""
    made = {
        "http-api.md": http_api(),
        "states.md": states(),
        "errors.md": errors(),
        "settings.md": all_settings(),
        "limits.md": all_limits(),
        "keys.md": all_keys(),
        "metrics.md": metrics(),
        "cli.md": cli(),
        "security.md": security(ENDPOINTS),
        "seeds.md": seeds(),
    }
    return {name: _finished(text) for name, text in made.items()}


# HTTP


def http_api() -> str:
    described = _Types()
    lines = [
        "# HTTP API",
        "",
        f"All paths of jobs begin with `{API}`. Bodies and answers are JSON; a request with a body says",
        "`content-type: application/json`. Bodies are strict: an unknown field is refused, so that no mistake is",
        "silently ignored. `null` in an optional field means that the field is absent; only a document such as",
        "`payload` may itself be null. Times are RFC 3339 with an offset, or a date (midnight UTC); answers give",
        "them in UTC with nine decimals.",
        "",
        "A refusal has this form, with a stable [code](errors.md):",
        "",
        "```json",
        '{"error": "a sentence", "code": "UPPER_SNAKE", "field": "jobs[3].queue", "retry_after_ms": 250}',
        "```",
        "",
        "`field` and `retry_after_ms` are present only where they apply. Send the key in the",
        "header `X-API-Key` or `Authorization: Bearer`; each endpoint names the permission that it needs.",
        "",
        "| | | |",
        "|---|---|---|",
        *(f"| `{e.method}` | [`{e.path}`](#{e.name}) | {_cell(e.summary)} |" for e in ENDPOINTS),
        "",
    ]
    for endpoint in ENDPOINTS:
        lines += _endpoint(endpoint, described)
    lines += ["## Parts", "", "The types named in the tables above.", ""]
    for name, text in described.parts():
        lines += [f"### {name}", "", *text, ""]
    _check_sentences("PAGE_ROUTES", PAGE_ROUTES, _page_paths())
    lines += [
        "## Other routes",
        "",
        *_table(("path", "meaning"), ((f"`{path}`", text) for path, text in PAGE_ROUTES.items())),
    ]
    return "\n".join(lines)


def _page_paths() -> list[str]:
    nothing: Any = None  # routes are declared without looking at what will serve them
    pages = Pages(nothing, nothing, nothing, ENDPOINTS, "", Console(ROOT / "nowhere"))
    return [route.path for route in pages.app().routes]  # type: ignore[attr-defined]


def _endpoint(endpoint: Endpoint, described: "_Types") -> list[str]:
    lines = [f'<a id="{endpoint.name}"></a>', "", f"## {endpoint.method} {API}{endpoint.path}", "", endpoint.summary]
    lines[-1] += "." if not lines[-1].endswith(".") else ""
    if endpoint.aliases:
        lines[-1] += f" Also at {', '.join(f'`{API}{alias}`' for alias in endpoint.aliases)}."
    if endpoint.query is not None:
        lines += ["", "**Query**", "", *described.fields(endpoint.query, is_body=True)]
    if endpoint.body is not None:
        note = " (may be left out)" if endpoint.body_optional else ""
        lines += ["", f"**Body**{note}", "", *described.fields(endpoint.body, is_body=True)]
    for status, answer in endpoint.answers.items():
        if answer is None:
            lines += ["", f"**Answer {status}**: empty"]
            continue
        struct, is_list = _struct_of(answer)
        kind = ", a list of" if is_list else ""
        lines += ["", f"**Answer {status}**{kind}", "", *described.fields(struct, is_body=False)]
    codes = ", ".join(f"[`{code}`](errors.md#{code.lower()})" for code in refusals_of(endpoint))
    access = "none" if endpoint.access == OPEN else f"`{endpoint.access}`"
    return [*lines, "", f"**Permission**: {access}", "", f"**Refusals**: {codes}", ""]


def _struct_of(kind: Any) -> tuple[type, bool]:
    return (get_args(kind)[0], True) if get_origin(kind) is list else (kind, False)


class _Types:
    """Fields of structs as tables, and the structs inside them as parts to be described later."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, Any]] = {}
        self._is_body: dict[str, bool] = {}

    def fields(self, struct: type, is_body: bool) -> list[str]:
        (schema,), components = msgspec.json.schema_components([struct], ref_template="{name}")
        return self._rows(struct.__name__, components.get(struct.__name__, schema), components, is_body)

    def _rows(self, struct: str, schema: dict[str, Any], components: dict[str, Any], is_body: bool) -> list[str]:
        rows = []
        for name, field in schema.get("properties", {}).items():
            kind = self._kind(field, components, is_body)
            need = "required" if name in schema.get("required", ()) else _default(field)
            note = note_of(struct, name, field)
            rows.append((f"`{name}`", kind, need, _cell(note)) if is_body else (f"`{name}`", kind, _cell(note)))
        heading = ("field", "type", "default", "") if is_body else ("field", "type", "")
        return _table(heading, rows)

    def _kind(self, field: dict[str, Any], components: dict[str, Any], is_body: bool) -> str:
        if "enum" in field:
            return " or ".join(f"`{value}`" for value in field["enum"])
        if "anyOf" in field:
            options = [option for option in field["anyOf"] if option.get("type") != "null"]
            return " or ".join(self._kind(option, components, is_body) for option in options) or "null"
        if "$ref" in field:
            name = field["$ref"]
            self._waiting.setdefault(name, components)
            self._is_body.setdefault(name, is_body)
            return f"[{name}](#{name.lower()})"
        if field.get("type") == "array":
            return f"list of {self._kind(field.get('items', {}), components, is_body)}{_bounds(field)}"
        if field.get("type") == "object" and "additionalProperties" in field:
            return f"object of {self._kind(field['additionalProperties'], components, is_body)}{_bounds(field)}"
        return str(field.get("type", "any JSON")) + _bounds(field)

    def parts(self) -> Iterator[tuple[str, list[str]]]:
        done: set[str] = set()
        while waiting := [name for name in self._waiting if name not in done]:
            name = waiting[0]
            done.add(name)
            components = self._waiting[name]
            yield name, self._rows(name, components[name], components, self._is_body[name])


def _bounds(field: dict[str, Any]) -> str:
    low = next((field[name] for name in ("minimum", "minLength", "minItems", "minProperties") if name in field), None)
    high = next((field[name] for name in ("maximum", "maxLength", "maxItems", "maxProperties") if name in field), None)
    unit = " characters" if "maxLength" in field else ""
    if high is None:
        return "" if low is None else f", at least {low:,}{unit}"
    return f", up to {high:,}{unit}" if low in (None, 0) else f", {low:,} to {high:,}{unit}"


def _default(field: dict[str, Any]) -> str:
    value = field.get("default")
    return "none" if value in (None, "", []) else f"`{msgspec.json.encode(value).decode()}`"


# States


def states() -> str:
    spoken = _verbs_spoken()
    _check_diagram(spoken)
    _check_sentences("STATES", STATES, State)
    later = [verb for verb in RULES if verb not in spoken]
    return "\n".join(
        [
            "# States of a job",
            "",
            "Generated from the table in `corvo/model/lifecycle.py`, which the state machine uses. A change that is",
            "not in the table is refused with `WRONG_STATE` and changes nothing.",
            "",
            "```text",
            DIAGRAM.rstrip("\n"),
            "```",
            "",
            *_table(
                ("state", "meaning", "a job may be created in it", "settled"),
                (
                    (f"`{STATE_NAMES[state]}`", STATES[state], _yes(state in BIRTH_STATES), _yes(state in SETTLED))
                    for state in State
                ),
            ),
            "",
            "## All changes",
            "",
            *_table(
                ("verb", "from", "to", "decided by", "in use"),
                (
                    (
                        f"`{verb}`",
                        ", ".join(f"`{STATE_NAMES[state]}`" for state in sorted(rule.sources)),
                        f"`{STATE_NAMES[rule.destination]}`",
                        rule.said_by,
                        _yes(verb in spoken),
                    )
                    for verb, rule in RULES.items()
                ),
            ),
            "",
            f"No operation uses these verbs yet: {', '.join(map(str, later))}.",
        ]
    )


def _verbs_spoken() -> set[Verb]:
    """Verbs that some operation or rule uses, found in its source."""
    return {
        Verb[node.attr]
        for folder in ("ops", "rules")
        for path in sorted((ROOT / "corvo" / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Verb"
    }


def _check_diagram(spoken: set[Verb]) -> None:
    drawn = {verb for verb in Verb if re.search(rf"\b{verb}\b", DIAGRAM)}
    if drawn != spoken:
        raise SystemExit(f"DIAGRAM shows {sorted(drawn)}, the operations say {sorted(spoken)}: draw it anew")


# Errors


def errors() -> str:
    _check_sentences("ERRORS", ERRORS, STATUS)
    (schema,), components = msgspec.json.schema_components([ErrorBody], ref_template="{name}")
    names = ", ".join(f"`{name}`" for name in components.get("ErrorBody", schema)["properties"])
    lines = [
        "# Errors",
        "",
        f"An error is a JSON object with {names}. Programs use `code`; people read `error`. An error changes",
        "nothing, unless its line below says otherwise. *Retry*: the same request may succeed later.",
        "",
        "| code | status | retry | meaning |",
        "|---|---|---|---|",
    ]
    for code, status in STATUS.items():
        again = "yes" if code in RETRYABLE else ""
        lines.append(f'| <a id="{code.lower()}"></a>`{code}` | {status} | {again} | {_cell(ERRORS[code])} |')
    return "\n".join(lines)


# Settings


def all_settings() -> str:
    defaults = dict(zip(settings.names(), settings.Settings.__struct_defaults__, strict=True))
    hints = get_type_hints(settings.Settings, include_extras=True)
    rows = []
    for name in settings.names():
        kind, meta = get_args(hints[name])
        flag = "--" + name.replace("_", "-")
        variable = settings.ENV_PREFIX + name.upper()
        default = "none" if defaults[name] == "" else f"`{defaults[name]}`"
        rows.append((f"`{flag}`", f"`{variable}`", f"`{name}`", _setting_kind(kind, meta), default, meta.description))
    return "\n".join(
        [
            "# Settings",
            "",
            "A flag wins over its variable, a variable over the settings file, the file over the default. The file is",
            f"TOML, named by `--config` or `{settings.ENV_PREFIX}CONFIG`. `corvo config` prints every value and where",
            "it comes from; a wrong value, or an unknown name in the file, keeps the server from starting, and all",
            "errors are reported at once. How to use them: [settings](../how-to/settings.md).",
            "",
            *_table(("flag", "variable", "in the file", "values", "default", "meaning"), rows),
        ]
    )


def _setting_kind(kind: Any, meta: msgspec.Meta) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(f"`{value}`" for value in get_args(kind) if value)
    if meta.ge is not None:
        return f"{meta.ge:,} to {meta.le:,}"
    return "text"


# Limits


def all_limits() -> str:
    text = (ROOT / "corvo" / "model" / "limits.py").read_text()
    rows = [(f"`{name}`", _amount(name, getattr(limits, name)), why) for name, why in _explained(text)]
    others = []
    for path, name, what in OTHER_LIMITS:
        module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
        comment = dict(_explained((ROOT / path).read_text()))[name]
        others.append((f"`{name}`", _amount(name, getattr(module, name)), what, f"`{path}`", comment))
    return "\n".join(
        [
            "# Limits",
            "",
            "Every list, buffer and wait has a bound. Beyond it the answer is a 4xx, or 429 with the time to wait",
            "before a retry. Nothing grows without limit.",
            "",
            "## Part of the contract",
            "",
            "From `corvo/model/limits.py`, with the reasons given there.",
            "",
            *_table(("name", "value", "reason"), rows),
            "",
            "`QUEUE_NAME`, `JOB_ID` and their like are patterns that the whole name must match.",
            "",
            "## Bounds of single processes",
            "",
            *_table(("name", "value", "what it bounds", "where", "reason"), others),
        ]
    )


def _explained(text: str) -> list[tuple[str, str]]:
    """Constants of a module with the comment beside or above each; a comment above holds for the lines below it,
    up to an empty line."""
    lines = text.splitlines()
    found = []
    for node in ast.parse(text).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        if not node.targets[0].id.isupper():
            continue
        _, hash_sign, beside = lines[node.lineno - 1].partition("  # ")
        found.append((node.targets[0].id, _cell(beside if hash_sign else _above(lines, node.lineno - 1))))
    return found


def _above(lines: Sequence[str], at: int) -> str:
    while at > 0 and lines[at - 1] and not lines[at - 1].startswith("#"):
        at -= 1
    comments: list[str] = []
    while at > 0 and lines[at - 1].startswith("#"):
        at -= 1
        comments.insert(0, lines[at].lstrip("# "))
    return " ".join(comments)


def _amount(name: str, value: Any) -> str:
    if isinstance(value, re.Pattern):
        return f"`{_cell(value.pattern)}`"
    if name.endswith(("_BYTES_MAX", "_BYTES_DEFAULT")) and value % 1024 == 0:
        return f"{value // 1024:,} KiB" if value < 1 << 20 else f"{value // (1 << 20):,} MiB"
    for part, unit in (("_NS_", 10**9), ("_MS_", 1000), ("_S_", 1)):
        if part in f"{name}_":
            return _span(value / unit)
    return f"{value:,}"


def _span(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size and seconds % size == 0:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:g} s"


# Keys


def all_keys() -> str:
    assert keys.__doc__ is not None
    _, _, rest = keys.__doc__.partition("\n\n")
    log = ast.get_docstring(ast.parse((ROOT / "shards" / "storage" / "raft_log.py").read_text()))
    assert log is not None
    _, _, log_rest = log.partition("\n\n")
    return "\n".join(
        [
            "# Keys",
            "",
            "The contents of one shard's LevelDB. Only `corvo/state/keys.py` builds and reads these keys; the text",
            "below is its docstring. `{name:8}` is a number of eight bytes.",
            "",
            rest.strip("\n"),
            "",
            "## The Raft log and hard state",
            "",
            "From `shards/storage/raft_log.py`:",
            "",
            log_rest.rstrip("\n"),
        ]
    )


# Metrics


def metrics() -> str:
    figures = Metrics(queues_max=1)
    figures.observe("POST", "/enqueue", 201, 0.0)
    lag, report = Lag(0.0, "", 0, 0.0, 0.0), HealthReport("healthy")
    content = figures.render([_a_status()], [_a_queue()], lag, report, {"shard-0": 0}).decode()
    rows = []
    for family in text_string_to_metric_families(content):
        if family.name.endswith("_created"):
            continue
        labels = sorted({label for sample in family.samples for label in sample.labels} - {"le"})
        name = family.name + ("_total" if family.type == "counter" else "")
        rows.append(
            (f"`{name}`", family.type, ", ".join(f"`{label}`" for label in labels), _cell(family.documentation))
        )
    return "\n".join(
        [
            "# Metrics",
            "",
            "Served at `/metrics` in Prometheus' text format. The gateway asks every shard when it is scraped; a shard",
            "that does not answer within a second is missing from that scrape: alert on that. Labels are route",
            "templates, shard numbers and nodes, never paths or job ids: no client can make them grow. Queue names are",
            "labels only with the setting `metrics_queues`, for up to that many queues; `_other` is the rest.",
            "A histogram also has `_bucket`, `_sum` and `_count`. What to watch: [monitor](../how-to/monitor.md).",
            "",
            *_table(("metric", "type", "labels", "meaning"), rows),
        ]
    )


def _a_queue() -> QueueView:
    counts = dict.fromkeys(("pending", "active", "held", "completed", "dead", "scheduled", "retrying", "cancelled"), 0)
    return QueueView(name="a", created_at="", enqueued=0, failed=0, **counts)


def _a_status() -> ShardStatus:
    """A status full of nothing but one other replica: only names and labels matter."""
    empty: dict[Any, Any] = {int: 0, str: "", bool: True, float: 0.0}
    hints = get_type_hints(ShardStatus)
    values: dict[str, Any] = {
        field.name: Histogram([1.0], [0, 0]) if hints[field.name] is Histogram else empty[hints[field.name]]
        for field in msgspec.structs.fields(ShardStatus)
        if field.required
    }
    return ShardStatus(**values, replicas=[ReplicaStatus("node-2", 0, "replicate", False, True, 0.0)])


# Commands


def cli() -> str:
    lines = [
        "# Commands",
        "",
        "What `corvo --help` and `corvo COMMAND --help` print. Exit codes: 0 done; 1 the server refused or cannot be",
        "reached; 2 wrong usage or settings. Tables are for people: give `--output json` to programs.",
        "",
        *_help(),
    ]
    for names in _command_names(get_command(app)):
        lines += ["", f"## corvo {' '.join(names)}", "", *_help(*names)]
    return "\n".join(lines)


def _command_names(group: Any) -> Iterator[tuple[str, ...]]:
    """Every command; those of a group after the group itself."""
    for name, command in group.commands.items():
        yield (name,)
        if hasattr(command, "commands"):
            yield from ((name, *rest) for rest in _command_names(command))


def _help(*command: str) -> list[str]:
    """At a fixed width, whatever terminal this runs in."""
    result = CliRunner().invoke(app, [*command, "--help"], prog_name="corvo", terminal_width=HELP_WIDTH)
    return ["```text", *(line.rstrip() for line in result.output.strip("\n").splitlines()), "```"]


# Text


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(heading)} |",
        "|" + "---|" * len(heading),
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").strip()


def _yes(is_so: bool) -> str:
    return "yes" if is_so else ""


def _check_sentences(table: str, sentences: Iterable[Any], wanted: Iterable[Any]) -> None:
    if missing := set(wanted) ^ set(sentences):
        raise SystemExit(f"{table} in docs/generate.py and the code differ in {sorted(map(str, missing))}")


def _finished(text: str) -> str:
    title, _, rest = text.partition("\n")
    note = "<!-- Written by `python -m docs.generate` from the code: change the code, then run it. -->"
    return f"{title}\n\n{note}\n{rest.rstrip()}\n"


def main() -> int:
    for name, text in pages().items():
        (REFERENCE / name).write_text(text)
    llms.PATH.write_text(llms.llms(ENDPOINTS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
