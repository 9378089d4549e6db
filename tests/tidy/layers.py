"""The layers of each package: its rooms (folders and top-level modules), lowest first.

A room may import itself and the rooms before it, nothing after it. So no two rooms import each other. A new room gets a
line here; a room that needs a later one is in the wrong place, or holds a part that belongs lower.
"""

LAYERS: dict[str, tuple[str, ...]] = {
    "corvo": (
        "__init__",
        "model",
        "runtime",
        "state",
        "rules",
        "endpoint",
        "queries",
        "ops",
        "engine",
        "wire",
        "calls",
        "links",
        "client",
        "worker",
        "cli",
        "testing",
    ),
    "corvo.client.worker": (
        "outcomes",
        "arguments",
        "context",
        "terms",
        "handles",
        "tasks",
        "app",
        "frames",
        "reports",
        "lanes",
        "ledger",
        "handlers",
        "runners",
        "processes",
        "connection",
        "tally",
        "watch",
        "worker_loop",
        "health",
        "worker",
        "__init__",
        "reload",
        "command",
        "__main__",
    ),
    "corvo.ops": (
        "job_terms",
        "audit",
        "batches",
        "jobs",
        "upkeep",
        "queues",
        "schedules",
        "bulk",
        "access",
        "__init__",
    ),
    "corvo.cli": (
        "__init__",
        "formats",
        "screen",
        "supervise",
        "mcp",
        "diagnosis",
        "commands",
        "main",
        "derive_client",
        "derive",
    ),
    "shards": (
        "__init__",
        "errors",
        "job_metrics",
        "metrics",
        "turn",
        "raft",
        "courier",
        "storage",
        "feed",
        "snapshots",
        "intake",
        "group",
        "readiness",
        "status",
        "upkeep",
        "replica",
        "loop",
        "__main__",
    ),
    "gateway": (
        "__init__",
        "http",
        "access",
        "readdb",
        "shards",
        "search",
        "mirror",
        "job_metrics",
        "metrics",
        "health",
        "routes",
        "field_notes",
        "examples",
        "openapi",
        "docs_page",
        "console",
        "pages",
        "api",
        "app",
        "__main__",
    ),
}

# Breaches that are still there: (importing room, imported room). Delete a line as soon as its test says so.
KNOWN_CYCLES: set[tuple[str, str]] = set()

# Written from the types of the server, whose names they keep (corvo/cli/derive_client.py).
COPIES = {"corvo/client/answers.py", "corvo/client/bodies.py", "corvo/client/refusals.py"}

# Written for users of the library: the words for an operation are the same on their side.
PUBLIC_WORDS = {"corvo/client/worker/outcomes.py", "corvo/client/worker/worker.py"}

# Class names that are still defined twice. Delete a name as soon as its test says so.
KNOWN_NAMESAKES: set[str] = set()
