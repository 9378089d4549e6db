"""corvo-design.md: the command line, each line of the seed as it stands there."""

from docs.seeds.rows import (
    Http,
    Section,
    Shell,
    active,
    completed,
    dead,
    enqueued,
    get,
    has_state,
    post,
    works,
)

_MANY = 55  # more than one page of a search
_MANY_JOBS = ", ".join(['{"queue": "old.queue", "payload": {}}'] * _MANY)
_ALL_MOVED = post("/jobs/search", '{"queue": "new.queue", "limit": 100}', {"total": _MANY})

JOBS = Section(
    "Commands: jobs",
    (
        works(
            "cli-enqueue",
            "`corvo enqueue <queue> <payload>`",
            "Prints the id.",
            Shell("""corvo enqueue emails.send '{"to": "user@example.com"}'""", ("_job_", "pending")),
        ),
        works(
            "cli-inspect",
            "`corvo inspect <job-id>`",
            "Job, attempts and errors, asked of the shard.",
            Shell("corvo inspect $JOB", ("$JOB", "emails.send")),
            before=[enqueued("emails.send")],
        ),
        works(
            "cli-retry",
            "`corvo retry <job-id>`",
            "Also of a job that is completed or cancelled.",
            Shell("corvo retry $JOB"),
            has_state("pending"),
            before=dead("seed.retry"),
        ),
        works(
            "cli-cancel",
            "`corvo cancel <job-id>`",
            "Also of an active one, with a grace for its worker.",
            Shell("corvo cancel $JOB"),
            has_state("cancelled"),
            before=[enqueued("seed.cancel")],
        ),
        works(
            "cli-move",
            "`corvo move <job-id> <target-queue>`",
            "The job keeps its id.",
            Shell("corvo move $JOB seed.target"),
            get("/jobs/$JOB", {"queue": "seed.target"}),
            before=[enqueued("seed.move")],
        ),
        works(
            "cli-delete",
            "`corvo delete <job-id>`",
            "In any state.",
            Shell("corvo delete $JOB"),
            get("/jobs/$JOB", status=404),
            before=[enqueued("seed.delete")],
        ),
    ),
)

QUEUES = Section(
    "Commands: queues",
    (
        works(
            "cli-queues",
            "`corvo queues`",
            "Counts, rates, and the age of the oldest pending job.",
            Shell("corvo queues", ("emails.send", "PENDING")),
            before=[enqueued("emails.send")],
        ),
        works(
            "cli-pause",
            "`corvo pause <queue>`",
            "Active jobs go on.",
            Shell("corvo pause seed.paused"),
            get("/queues/seed.paused", {"paused": True}),
            before=[enqueued("seed.paused")],
        ),
        works(
            "cli-resume",
            "`corvo resume <queue>`",
            "After a pause or a drain.",
            Shell("corvo resume seed.paused"),
            get("/queues/seed.paused", {"paused": False}),
            before=[post("/queues/seed.paused/pause")],
        ),
        works(
            "cli-clear",
            "`corvo clear <queue>`",
            "Asks first at a terminal; without one it needs `--yes`, and says so.",
            Shell("corvo clear seed.cleared > said.txt 2>&1 || grep -e --yes said.txt"),
            Shell("corvo clear seed.cleared --yes"),
            get("/jobs/$JOB", status=404),
            before=[enqueued("seed.cleared")],
        ),
        works(
            "cli-drain",
            "`corvo drain <queue>`",
            "`--no-wait` returns at once, `--timeout` stops the waiting.",
            Shell(
                "corvo drain seed.slow &\n"
                'until curl -s "$URL/api/v1/queues/seed.slow" '
                """| grep -qE '"(paused|draining)":true'; do sleep 0.05; done\n"""
                'curl -sX POST "$URL/api/v1/ack/$JOB" && wait $!',
                ("drained",),
            ),
            before=active("seed.slow"),
            fresh=["seed.slow"],
        ),
        works(
            "cli-destroy",
            "`corvo destroy <queue> --confirm`",
            "Also `corvo queue delete`; `--yes` is the same as `--confirm`.",
            Shell("corvo destroy seed.destroyed --confirm"),
            get("/queues/seed.destroyed", status=404),
            before=[enqueued("seed.destroyed")],
        ),
    ),
)

SEARCH = Section(
    "Commands: search and bulk",
    (
        works(
            "cli-search-state",
            "`corvo search --queue emails.send --state dead`",
            "See [search](../how-to/search.md).",
            Shell("corvo search --queue emails.send --state dead", ("$JOB",)),
            before=dead("emails.send"),
            fresh=["emails.send"],
        ),
        works(
            "cli-search-contains",
            '`corvo search --queue emails.send --payload-contains "user@example.com"`',
            "Case counts.",
            Shell('corvo search --queue emails.send --payload-contains "user@example.com"', ("$JOB",)),
            before=[enqueued("emails.send", '{"to": "user@example.com"}')],
            fresh=["emails.send"],
        ),
        works(
            "cli-search-jq",
            "`corvo search --queue emails.send --payload-jq '.amount > 100'`",
            "See [`payload_jq`](payload-jq.md).",
            Shell("corvo search --queue emails.send --payload-jq '.amount > 100'", ("$JOB",)),
            before=[enqueued("emails.send", '{"amount": 150}')],
            fresh=["emails.send"],
        ),
        works(
            "cli-search-tag",
            "`corvo search --tag tenant=acme-corp --state pending`",
            "`KEY:=1` for a number.",
            Shell("corvo search --tag tenant=acme-corp --state pending", ("$JOB",)),
            before=[enqueued("emails.send", more='"tags": {"tenant": "acme-corp"}')],
            fresh=["emails.send"],
        ),
        works(
            "cli-search-error-date",
            '`corvo search --error-contains "SMTP" --created-after 2026-02-10`',
            "A date is its midnight in UTC; `1h` is an hour ago.",
            Shell('corvo search --error-contains "SMTP" --created-after 2026-02-10', ("$JOB",)),
            before=dead("emails.send"),
            fresh=["emails.send"],
        ),
        works(
            "cli-pipe-retry",
            "`corvo search --queue emails.send --state dead | corvo bulk retry`",
            "See [many jobs](../how-to/bulk.md).",
            Shell("corvo search --queue emails.send --state dead | corvo bulk retry"),
            has_state("pending"),
            before=dead("emails.send"),
            fresh=["emails.send"],
        ),
        works(
            "cli-pipe-everything",
            "`corvo search --queue old.queue --state pending | corvo bulk move new.queue`",
            "A pipe gets every job that matches, not one page.",
            Shell("corvo search --queue old.queue --state pending | corvo bulk move new.queue"),
            _ALL_MOVED,
            before=[Http("POST /api/v1/enqueue/batch", f'{{"jobs": [{_MANY_JOBS}]}}', 201)],
            fresh=["old.queue", "new.queue"],
        ),
        works(
            "cli-pipe-delete",
            "`corvo search --payload-jq '.legacy == true' | corvo bulk delete`",
            "Over all queues.",
            Shell("corvo search --payload-jq '.legacy == true' | corvo bulk delete"),
            get("/jobs/$JOB", status=404),
            before=[enqueued("seed.legacy", '{"legacy": true}')],
        ),
        works(
            "cli-bulk-filter",
            """`corvo bulk retry --filter '{"queue":"emails.send","state":["dead"]}'`""",
            "The filter is a body of `POST /jobs/search`.",
            Shell("""corvo bulk retry --filter '{"queue":"emails.send","state":["dead"]}'"""),
            has_state("pending"),
            before=dead("emails.send"),
            fresh=["emails.send"],
        ),
    ),
)

SERVER = Section(
    "Commands: server and cluster",
    (
        works("cli-server", "`corvo server`", "All rows that are run talk to one.", Shell("corvo config", ("shards",))),
        works(
            "cli-server-bootstrap",
            "`corvo server --bootstrap`",
            "Others can join the node; without the flag it listens for nobody.",
            Shell("corvo config --bootstrap"),
        ),
        works(
            "cli-server-join",
            "`corvo server --join <addr>`",
            "See [run a cluster](../how-to/run-a-cluster.md).",
            Shell("corvo config --join 127.0.0.1:9400 --raft-bind 127.0.0.1:9500", ("127.0.0.1:9400",)),
        ),
        works(
            "cli-server-raft-bind",
            "`corvo server --raft-bind :9000`",
            "Address and first port between nodes.",
            Shell("corvo config --raft-bind :9000", (":9000",)),
        ),
        works(
            "cli-server-node-id",
            "`corvo server --node-id node-1`",
            "Name of the node.",
            Shell("corvo config --node-id node-1", ("node-1",)),
        ),
        works(
            "cli-status",
            "`corvo status`",
            "Health, queues and shards.",
            Shell("corvo status", ("healthy", "seed.status")),
            before=[enqueued("seed.status")],
        ),
        works(
            "cli-top",
            "`corvo top`",
            "Live; without a terminal one snapshot. See [watch a server live](../how-to/top.md).",
            Shell("corvo top", ("QUEUE", "WORKER")),
        ),
        works(
            "cli-workers",
            "`corvo workers`",
            "Workers that hold jobs or wait for one.",
            Shell("corvo workers", ("seed-worker",)),
            before=active("seed.workers"),
        ),
        works(
            "cli-schedules",
            "`corvo schedules`",
            "Also `corvo schedules list`.",
            Shell("corvo schedules", ("seed-listed",)),
            before=[
                Http(
                    "POST /api/v1/schedules",
                    '{"name": "seed-listed", "queue": "seed.cron", "cron": "0 9 * * *", "payload": {}}',
                    201,
                )
            ],
        ),
        works(
            "cli-cluster-status",
            "`corvo cluster status`",
            "Nodes, replicas and their lag.",
            Shell("corvo cluster status", ("SHARD", "LAG", "node-1")),
        ),
        works(
            "cli-output-json",
            "`--output json` for all commands",
            "Errors are JSON too, on standard error.",
            Shell("corvo top --once --output json | jq -e ."),
            Shell("corvo version --output json | jq -e ."),
            Shell("corvo config --output json | jq -e ."),
        ),
    ),
)

SCRIPTS = Section(
    "Commands: scripts",
    (
        works(
            "script-retry",
            '`search --queue emails.send --state dead --error-contains "SMTP" --output json | corvo bulk retry`',
            "See [many jobs](../how-to/bulk.md).",
            Shell(
                'corvo search --queue emails.send --state dead --error-contains "SMTP" --output json \\\n'
                "  | corvo bulk retry"
            ),
            has_state("pending"),
            before=dead("emails.send"),
            fresh=["emails.send"],
        ),
        works(
            "script-move",
            "`search --queue old.emails --state pending --output json | corvo bulk move emails.v2`",
            "See [many jobs](../how-to/bulk.md).",
            Shell("corvo search --queue old.emails --state pending --output json \\\n  | corvo bulk move emails.v2"),
            get("/jobs/$JOB", {"queue": "emails.v2"}),
            before=[enqueued("old.emails")],
            fresh=["old.emails", "emails.v2"],
        ),
        works(
            "script-delete-old",
            "`search --state completed --created-before \"$(date -d '7 days ago' -Iseconds)\" --output json "
            "| corvo bulk delete`",
            "When nothing matches it says so, with exit code 1.",
            Shell(
                "corvo search --state completed --created-before \"$(date -d '7 days ago' -Iseconds)\" "
                "--output json \\\n  | corvo bulk delete",
                complains="no job id on standard input",
                code=1,
            ),
            has_state("completed"),
            before=completed("seed.kept"),
        ),
        works(
            "script-count",
            "`search --state dead --output json | jq 'group_by(.queue) | map({queue: .[0].queue, count: length})'`",
            "An array; `--page` prints an object with total and cursor.",
            Shell(
                "corvo search --state dead --output json "
                "| jq 'group_by(.queue) | map({queue: .[0].queue, count: length})'",
                ('"queue": "emails.send"', '"count": '),
            ),
            before=dead("emails.send"),
        ),
        works(
            "script-export",
            "`search --queue reports --payload-jq '.customer_id == \"cust_42\"' --output json > jobs.json`",
            "An array, one job per line.",
            Shell(
                "corvo search --queue reports --payload-jq '.customer_id == \"cust_42\"' --output json > jobs.json\n"
                "cat jobs.json",
                ("$JOB",),
            ),
            before=[enqueued("reports", '{"customer_id": "cust_42"}')],
        ),
    ),
)

SECTIONS = (JOBS, QUEUES, SEARCH, SERVER, SCRIPTS)
