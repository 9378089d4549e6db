"""The cases and the table of permissions as the page `docs/reference/security.md`. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator

from corvo.endpoint import Endpoint
from corvo.model.access import CLUSTER_WIDE, OPEN, OWN, ROLES, built_in
from docs.security import access, http, jobs, operations
from docs.security.rows import Case
from gateway.pages import PAGE_ACCESS
from gateway.routes import API

PARTS = (
    ("HTTP", http.CASES),
    ("Authentication and access", access.CASES),
    ("Malformed input", jobs.CASES),
    ("Search, outbound requests, operations", operations.CASES),
)
CASES: tuple[Case, ...] = tuple(case for _, cases in PARTS for case in cases)
TESTS = "../../tests/"


def security(endpoints: Iterable[Endpoint]) -> str:
    figures = Counter(case.status for case in CASES)
    return "\n".join(
        [
            "# Security: cases and permissions",
            "",
            "What hostile clients ask, what they are answered, and the tests that show it. *Differs* means that the",
            "case is answered safely in another way than the usual advice. [The threat",
            "model](../explanation/security.md) says whom this defends against, and whom not.",
            "",
            "| answered | differs | not built | open |",
            "|---|---|---|---|",
            "| " + " | ".join(str(figures[status]) for status in ("answered", "differs", "not built", "open")) + " |",
            *(line for title, cases in PARTS for line in _part(title, cases)),
            "",
            "## Permissions",
            "",
            "Each endpoint needs one permission; each role gives some. *Installation* marks those that concern all",
            "tenants: only keys of the namespace `default` without a queue scope get them. Custom roles are lists of",
            "permissions.",
            "",
            *_permissions(endpoints),
            "",
        ]
    )


def _part(title: str, cases: tuple[Case, ...]) -> Iterator[str]:
    yield from ("", f"## {title}", "", "| case | asked | answered | | tests |", "|---|---|---|---|---|")
    for case in cases:
        status = "" if case.status == "answered" else f"*{case.status}*"
        yield f"| {case.name} | {_cell(case.asked)} | {_cell(case.answered)} | {status} | {_tests(case)} |"


def _tests(case: Case) -> str:
    files = dict.fromkeys(test.partition("::")[0] for test in case.tests)
    return ", ".join(f"[{file.rpartition('/')[2].removesuffix('.py')}]({TESTS}{file})" for file in files)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _permissions(endpoints: Iterable[Endpoint]) -> Iterator[str]:
    roles = {role: built_in(role, "key", role) for role in ROLES}
    yield f"| route | permission | {' | '.join(roles)} | |"
    yield "|---|---|" + "---|" * len(roles) + "---|"
    routes = [(f"{endpoint.method} {API}{endpoint.path}", endpoint.access) for endpoint in endpoints]
    for route, needs in [*routes, *((f"GET {path}", needs) for path, needs in PAGE_ACCESS.items())]:
        given = ["yes" if principal.may(needs) else "" for principal in roles.values()]
        shown = {OPEN: "none", OWN: "any credential"}.get(needs, f"`{needs}`")
        resource, _, action = needs.partition(":")
        is_wide = resource in CLUSTER_WIDE and action not in CLUSTER_WIDE[resource]
        yield f"| `{route}` | {shown} | {' | '.join(given)} | {'installation' if is_wide else ''} |"
