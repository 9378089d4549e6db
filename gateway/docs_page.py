"""/docs: the interface for people. An index, a search, every endpoint with an example, every field with its meaning.

One page without anything from elsewhere: it works where there is no network but the one to this server.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from html import escape
from typing import Any

import msgspec

from corvo import __version__
from corvo.endpoint import Endpoint
from corvo.model.errors import STATUS
from gateway import examples
from gateway.field_notes import PATH_NOTES, note_of
from gateway.http.messages import ErrorBody
from gateway.openapi import refusals_of
from gateway.routes import API

# Chapters of the index, by the beginning of the path; the first that fits.
_CHAPTERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Enqueue", ("/enqueue",)),
    ("Work", ("/fetch", "/ack", "/fail", "/heartbeat")),
    ("Search and bulk", ("/jobs/search", "/jobs/bulk", "/search", "/bulk", "/jobs/dead", "/jobs/held", "/errors")),
    ("Jobs", ("/jobs",)),
    ("Batches", ("/batch",)),
    ("Schedules", ("/schedules",)),
    ("Queues", ("/queues",)),
    ("Workers and figures", ("/workers", "/metrics")),
    ("Events", ("/events", "/cluster/events")),
    ("Cluster and server", ("/cluster", "/admin", "/info")),
)
_PARAMETER = re.compile(r"\{(\w+)\}")
_CODE = re.compile(r"`([^`]+)`")

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
code,pre{font:14px/1.45 ui-monospace,monospace} h1{font-size:1.6rem} h2{font-size:1.25rem;margin:2.5rem 0 .5rem}
pre{background:#f4f6f8;padding:.7rem;overflow:auto;border-radius:4px;margin:.4rem 0}
section{border-top:1px solid #d5dae0;padding:1rem 0} h3{font-size:1rem;margin:0}
h4{font-size:.9rem;margin:.8rem 0 .2rem} .m{display:inline-block;min-width:4rem;font-weight:700;color:#0b5cad}
table{border-collapse:collapse;width:100%} td,th{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0}
input{font:inherit;width:100%;padding:.5rem;box-sizing:border-box;border:1px solid #aab3bd;border-radius:4px}
nav ul{list-style:none;padding:0;margin:0} nav{columns:2;column-gap:2rem} nav div{break-inside:avoid;margin-bottom:1rem}
.muted{color:#5b6570} a{color:#0b5cad} [hidden]{display:none}
@media(prefers-color-scheme:dark){body{background:#14171a;color:#e6e9ec} .m,a{color:#7ab8ff} pre{background:#1e2328}
section{border-color:#2c3238} input{background:#1e2328;color:inherit;border-color:#444c56} .muted{color:#9aa4af}}
@media(max-width:40rem){nav{columns:1}}
"""
_SCRIPT = """
const box=document.getElementById('search-box'),none=document.getElementById('nothing-fits');
const parts=[...document.querySelectorAll('[data-search]')];
function look(){const words=box.value.toLowerCase().split(/\\s+/).filter(Boolean);let left=0;
for(const part of parts){const fits=words.every(word=>part.dataset.search.includes(word));part.hidden=!fits;left+=fits;}
for(const chapter of document.querySelectorAll('[data-chapter]'))
chapter.hidden=![...chapter.querySelectorAll('[data-search]')].some(part=>!part.hidden);none.hidden=left>0;}
box.addEventListener('input',look);look();
"""
SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-"
    + base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    + "'"
)


def page(endpoints: tuple[Endpoint, ...]) -> str:
    types = _Types()
    chapters = [(title, [one for one in endpoints if chapter_of(one) == title]) for title, _ in _CHAPTERS]
    body = [
        f"<h1>Corvo {escape(__version__)}</h1>",
        "<p>Bodies and answers are JSON. An answer of no is "
        '<code>{"error": "a sentence", "code": "UPPER_SNAKE"}</code> with one of the codes below each endpoint. '
        'For tools: <a href="/openapi.json">/openapi.json</a>.</p>',
        '<p><input id="search-box" type="search" placeholder="Search: a path, a word, a field, a code" '
        'aria-label="Search" autofocus></p><p id="nothing-fits" class="muted" hidden>Nothing fits.</p>',
        f"<nav>{''.join(_index(title, members) for title, members in chapters)}</nav>",
    ]
    for title, members in chapters:
        sections = "".join(_section(endpoint, types) for endpoint in members)
        body.append(f"<div data-chapter><h2>{escape(title)}</h2>{sections}</div>")
    types.table(ErrorBody, is_body=False)
    body.append(f"<div data-chapter><h2>Types</h2>{''.join(types.sections())}</div>")
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Corvo {escape(__version__)}: HTTP API</title><style>{_STYLE}</style>"
        f"{''.join(body)}<script>{_SCRIPT}</script></html>"
    )


def chapter_of(endpoint: Endpoint) -> str:
    events = ("/events", "/cluster/events")
    if endpoint.path in events:
        return "Events"
    fits = (title for title, beginnings in _CHAPTERS if endpoint.path.startswith(beginnings))
    return next(fits, _CHAPTERS[-1][0])


def _index(title: str, endpoints: Iterable[Endpoint]) -> str:
    lines = "".join(
        f'<li data-search="{_words(one)}"><a href="#{one.name}"><span class="m">{one.method}</span>'
        f"<code>{escape(one.path)}</code></a></li>"
        for one in endpoints
    )
    return f"<div data-chapter><b>{escape(title)}</b><ul>{lines}</ul></div>"


def _words(endpoint: Endpoint) -> str:
    """What a search looks through."""
    names: list[str] = []
    for kind in (endpoint.body, endpoint.query, *endpoint.answers.values()):
        if kind is not None:
            names += [name for name, _ in _properties(_struct_of(kind))]
    texts = [endpoint.method, endpoint.path, *endpoint.aliases, endpoint.summary, endpoint.name, *refusals_of(endpoint)]
    return escape(" ".join([*texts, *names]).lower(), quote=True)


def _section(endpoint: Endpoint, types: "_Types") -> str:
    also = "".join(f" Also at <code>{escape(API + alias)}</code>." for alias in endpoint.aliases)
    parts = [
        f'<section id="{escape(endpoint.name)}" data-search="{_words(endpoint)}"><h3><span class="m">{endpoint.method}'
        f"</span> <code>{escape(API + endpoint.path)}</code></h3><p>{_text(endpoint.summary)}.{also}</p>",
        f"<pre>{escape(examples.curl(endpoint, API))}</pre>",
    ]
    if names := _PARAMETER.findall(endpoint.path):
        rows = "".join(f"<tr><td><code>{name}</code></td><td>{_text(PATH_NOTES[name])}</td></tr>" for name in names)
        parts.append(f"<h4>In the path</h4><table>{rows}</table>")
    if endpoint.query is not None:
        parts.append(f"<h4>After the ?</h4>{types.table(endpoint.query, is_body=True)}")
    if endpoint.body is not None:
        optional = ", may be left out" if endpoint.body_optional else ""
        parts.append(f"<h4>Body{optional}</h4>{types.table(endpoint.body, is_body=True)}")
    parts += [_answer(endpoint, status, kind, types) for status, kind in endpoint.answers.items()]
    codes = ", ".join(f"<code>{code}</code>&nbsp;{STATUS[code]}" for code in refusals_of(endpoint))
    return "".join(parts) + f"<h4>Refusals</h4><p class='muted'>{codes}</p></section>"


def _answer(endpoint: Endpoint, status: int, kind: Any, types: "_Types") -> str:
    if kind is None:
        return f"<h4>Answer {status}</h4><p class='muted'>no content</p>"
    sample = json.dumps(examples.answer_of(kind), indent=2, ensure_ascii=False)
    if endpoint.media == "text/event-stream":
        sample = f"data: {json.dumps(examples.answer_of(kind), ensure_ascii=False)}"
    listed = ", a list of" if _struct_of(kind) is not kind else ""
    return (
        f"<h4>Answer {status}{listed}</h4>{types.table(_struct_of(kind), is_body=False)}"
        f"<details><summary>Example</summary><pre>{escape(sample)}</pre></details>"
    )


def _struct_of(kind: Any) -> type:
    return kind if isinstance(kind, type) else kind.__args__[0]


def _properties(struct: type) -> list[tuple[str, dict[str, Any]]]:
    (schema,), components = msgspec.json.schema_components([struct], ref_template="{name}")
    return list(components.get(struct.__name__, schema).get("properties", {}).items())


class _Types:
    """Tables of fields; the structs inside them have a section of their own, each once."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, Any]] = {}

    def table(self, struct: type, is_body: bool) -> str:
        (schema,), components = msgspec.json.schema_components([struct], ref_template="{name}")
        return self._rows(struct.__name__, components.get(struct.__name__, schema), components, is_body)

    def _rows(self, struct: str, schema: dict[str, Any], components: dict[str, Any], is_body: bool) -> str:
        rows = []
        for name, field in schema.get("properties", {}).items():
            need = "required" if name in schema.get("required", ()) else _default(field)
            rows.append(
                f"<tr><td><code>{escape(name)}</code></td><td>{self._kind(field, components)}</td>"
                + (f"<td class='muted'>{escape(need)}</td>" if is_body else "")
                + f"<td>{_text(note_of(struct, name, field))}</td></tr>"
            )
        return f"<table>{''.join(rows)}</table>"

    def _kind(self, field: dict[str, Any], components: dict[str, Any]) -> str:
        if "enum" in field:
            return " | ".join(f"<code>{escape(str(value))}</code>" for value in field["enum"])
        if "anyOf" in field:
            return " | ".join(self._kind(option, components) for option in field["anyOf"])
        if "$ref" in field:
            name = str(field["$ref"])
            self._waiting.setdefault(name, components)
            return f'<a href="#type-{escape(name)}">{escape(name)}</a>'
        if field.get("type") == "array":
            return f"list of {self._kind(field.get('items', {}), components)}"
        if field.get("type") == "object" and isinstance(field.get("additionalProperties"), dict):
            return f"object of {self._kind(field['additionalProperties'], components)}"
        return escape(str(field.get("type", "any JSON")))

    def sections(self) -> Iterable[str]:
        done: set[str] = set()
        while waiting := [name for name in self._waiting if name not in done]:
            name = waiting[0]
            done.add(name)
            schema = self._waiting[name][name]
            words = escape(" ".join([name, *schema.get("properties", {})]).lower(), quote=True)
            table = self._rows(name, schema, self._waiting[name], is_body=True)
            yield f'<section id="type-{escape(name)}" data-search="{words}"><h3>{escape(name)}</h3>{table}</section>'


def _default(field: dict[str, Any]) -> str:
    value = field.get("default")
    return "" if value in (None, "", []) else f"default {json.dumps(value)}"


def _text(words: str) -> str:
    """With what stands between back quotes as code."""
    return _CODE.sub(r"<code>\1</code>", escape(words))
