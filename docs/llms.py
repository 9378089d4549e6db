"""Writes `gateway/llms.txt`, which gateways serve at `/llms.txt`: an index for machines, from endpoints and pages.

The form is that of llmstxt.org: a title, a summary, sections of links with a note each. Links go to the server itself,
so they are those of its version. The guides are not served; their first sentences tell what the server can do.
"""

import re
from pathlib import Path

from corvo.endpoint import Endpoint
from gateway.docs_page import chapter_of
from gateway.routes import API

PATH = Path(__file__).parents[1] / "gateway" / "llms.txt"
GUIDES = Path(__file__).parent / "how-to"
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_SENTENCE = re.compile(r"(.+?[.:])(?:\s|$)", re.DOTALL)

_HEAD = f"""# Corvo

> A job server. Producers enqueue jobs over HTTP/JSON; workers in any language fetch them, run them and acknowledge \
them. The server implements retries, leases, schedules, batches, limits and search.

- All paths of jobs begin with `{API}`. Bodies and answers are JSON; bodies are strict, an unknown field is refused.
- A refusal is `{{"error": "a sentence", "code": "UPPER_SNAKE"}}`. Repeat 429 and 503 after `Retry-After`.
- Send a key as `X-API-Key` or `Authorization: Bearer`, where the server wants one.
- A worker: `POST {API}/fetch` waits for a job; `POST {API}/ack/{{job_id}}` with its `lease_token` completes it; \
`POST {API}/fail/{{job_id}}` reports an error; `POST {API}/heartbeat` keeps the lease.
- A job runs at least once and completes once. Give `idempotency_key` or `unique_key` to enqueue only once.
- States: scheduled, pending, active, retrying, held; ended: completed, dead, cancelled.

## Interface

- [OpenAPI 3.1](/openapi.json): every endpoint, field and code
- [For people](/docs): the same with examples
- [Metrics](/metrics): for Prometheus
- `corvo mcp`: these endpoints as tools of the Model Context Protocol
- `corvo --help`: the command line
"""


def llms(endpoints: tuple[Endpoint, ...]) -> str:
    lines = [_HEAD]
    chapters: dict[str, list[Endpoint]] = {}
    for endpoint in endpoints:
        chapters.setdefault(chapter_of(endpoint), []).append(endpoint)
    for title, members in chapters.items():
        lines += [f"## {title}", ""]
        lines += [f"- [{one.method} {API}{one.path}](/docs#{one.name}): {one.summary.rstrip('.')}" for one in members]
        lines.append("")
    lines += ["## Guides, below docs/how-to in the source", ""]
    lines += [_guide(path) for path in sorted(GUIDES.glob("*.md"))]
    return "\n".join(lines) + "\n"


def _guide(path: Path) -> str:
    title, _, rest = path.read_text().partition("\n")
    found = _SENTENCE.match(_LINK.sub(r"\1", rest.strip()))
    note = " ".join(found[1].split()).rstrip(":.") if found and rest.strip()[0] not in "#<`|" else ""
    return f"- {path.name}: {title.removeprefix('# ')}" + (f". {note}" if note else "")
