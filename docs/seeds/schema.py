"""corvo-schema.md."""

from docs.seeds.rows import Row, Section, Sql, Table, differs, enqueued, get, not_yet, post, works

_SEE = "See [keys](keys.md)."


def _key(prefix: str, seed: str, where: str = _SEE, is_same: bool = True) -> Row:
    return (works if is_same else differs)(f"schema-key-{prefix}", seed, where)


def _no_key(prefix: str, seed: str, area: str) -> Row:
    return not_yet(f"schema-key-{prefix}", seed, area, "No such key.")


KEYS = Section(
    "Keys",
    (
        _key("j", "`j|` `JobKey`: MessagePack"),
        _key("je", "`je|` `JobErrorKey`", "By claim instead of attempt.", False),
        _key("p", "`p|` `PendingKey`", "By position instead of creation time.", False),
        _key("a", "`a|` `ActiveKey` → lease end", "With the number of the claim."),
        _key("s", "`s|` `ScheduledKey`"),
        _key("r", "`r|` `RetryingKey`"),
        _key("qa", "`qa|` `QueueAppendKey`", "By position.", False),
        _key("qac", "`qac|` `QueueCursorKey`", "In `qn|`.", False),
        _key("qc", "`qc|` `QueueConfigKey`: JSON", "In `qn|`.", False),
        _key("qn", "`qn|` `QueueNameKey`: presence", "The whole queue: settings, counts, cursors.", False),
        _key("u", "`u|` `UniqueKey` → `{jobID}|{expiresNs:8BE}`", "Holder and expiry, as MessagePack."),
        _key("l", "`l|` `RateLimitKey`", "Without the random part.", False),
        _key("b", "`b|` `BatchKey`"),
        _key("w", "`w|` `WorkerKey`"),
        _key("sc", "`sc|` `ScheduleKey`"),
        _key("ev", "`ev|` `EventLogKey`"),
        _key("evc", "`evc|` `EventCursorKey`", "The number is part of the machine's own record.", False),
        _no_key("bg", "`bg|` `BudgetKey`", "AI"),
        _no_key("pv", "`pv|` `ProviderKey`", "AI"),
        _no_key("qp", "`qp|` `QueueProviderKey`", "AI"),
        _key(
            "more",
            "no others",
            "`t|`, `i|`, `d|`, `f|`, `al|`, `x|` and others: due times, idempotency, dependencies, errands.",
            False,
        ),
        _key(
            "prefixes",
            "prefix scans: `PendingPrefix`, `ActivePrefix`, `ScheduledScanPrefix`, `RetryingScanPrefix`, "
            "`QueueAppendPrefix`, `JobErrorPrefix`, `UniquePrefix`, `RateLimitPrefix`, `EventLogPrefix`",
            "A prefix for each family.",
        ),
        _no_key("ai-prefixes", "`BudgetPrefix`, `ProviderPrefix`", "AI"),
        _key("encoding", "big-endian helpers: 1, 4, 8 bytes"),
        _key("priorities", "0 critical, 1 high, 2 normal"),
    ),
)


def _table(name: str, columns: str, where: str = "As in the seed.") -> Row:
    return works(f"schema-{name.replace('_', '-')}", f"table `{name}`: `{columns}`", where, Table(name, columns))


def _empty(name: str, columns: str, area: str, route: str) -> Row:
    """The table has the seed's columns, but the part of the server that would write it is missing."""
    return not_yet(
        f"schema-{name.replace('_', '-')}",
        f"table `{name}`: `{columns}`",
        area,
        "The table is there with these columns; nothing writes it.",
        Table(name, columns),
        get(route),
        before=[enqueued("seed.schema")],
    )


def _index(name: str, columns: str, where: str = "As in the seed.") -> Row:
    return works(f"schema-{name.replace('_', '-')}", f"index `{name}` ({columns})", where, Table(name, columns))


def _columns(name: str, columns: str, field: str) -> Row:
    return not_yet(
        f"schema-jobs-{name}",
        f"`jobs`: `{columns}`",
        "AI",
        "The columns are there, with their defaults in all rows.",
        Table("jobs", columns),
        post("/enqueue", f'{{"queue": "seed.schema", {field}}}', status=201),
    )


CORE = Section(
    "Core tables",
    (
        _table(
            "jobs",
            "id queue state payload priority attempt max_retries retry_backoff retry_base_delay_ms retry_max_delay_ms "
            "unique_key batch_id worker_id hostname tags progress checkpoint result parent_id chain_id chain_step "
            "chain_config hold_reason lease_expires_at scheduled_at expire_at created_at started_at "
            "completed_at failed_at",
            "See [read.db](../explanation/read-db.md).",
        ),
        _columns("result-schema", "result_schema", '"result_schema": {"type": "object"}'),
        _columns(
            "routing",
            "routing routing_target routing_index provider_error",
            '"routing": {"prefer": "large", "fallback": ["small"]}',
        ),
        _columns(
            "agent",
            "agent_iteration agent_max_iterations agent_max_cost_usd agent_iteration_timeout agent_total_cost_usd",
            '"agent": {"max_iterations": 3}',
        ),
        _index("idx_jobs_queue_state_priority", "queue state priority created_at"),
        _index("idx_jobs_state", "namespace state created_at", "Begins with the namespace, goes on with `created_at`."),
        _index("idx_jobs_scheduled", "state scheduled_at", "For `scheduled` and `retrying` jobs, as in the seed."),
        _index("idx_jobs_lease", "state lease_expires_at"),
        _index("idx_jobs_unique", "queue unique_key"),
        _index("idx_jobs_batch", "batch_id"),
        _index("idx_jobs_expire", "expire_at"),
        _index("idx_jobs_created", "namespace created_at", "Begins with the namespace."),
        _table("job_errors", "id job_id attempt error backtrace created_at"),
        _table("unique_locks", "queue unique_key job_id expires_at", "Its rows: see corvo-design.md above."),
        _table("batches", "id total pending succeeded failed created_at"),
        works(
            "schema-batches-callback",
            "`batches`: `callback_queue callback_payload`",
            "Those of `on_complete`.",
            Table("batches", "callback_queue callback_payload"),
        ),
        _table("queues", "name paused max_concurrency rate_limit rate_window_ms provider created_at"),
        _table("workers", "id hostname queues last_heartbeat started_at"),
        _table("schedules", "id name queue cron timezone payload unique_key max_retries last_run next_run created_at"),
    ),
)

AI = Section(
    "AI and agent tables",
    (
        _empty(
            "job_usage",
            "id job_id queue attempt phase input_tokens output_tokens cache_creation_tokens cache_read_tokens model "
            "provider cost_usd created_at",
            "AI",
            "/usage/summary",
        ),
        _empty("budgets", "id scope target daily_usd per_job_usd on_exceed created_at", "AI", "/budgets"),
        _empty(
            "job_iterations",
            "id job_id iteration status checkpoint trace hold_reason result input_tokens output_tokens "
            "cache_creation_tokens cache_read_tokens model provider cost_usd created_at",
            "AI",
            "/jobs/$JOB/iterations",
        ),
        _empty("job_scores", "id job_id dimension value scorer created_at", "AI", "/jobs/$JOB/scores"),
        _empty("providers", "name rpm_limit input_tpm_limit output_tpm_limit created_at", "AI", "/providers"),
        _empty(
            "approval_policies", "id name mode enabled queue tag_key tag_value created_at", "AI", "/approval-policies"
        ),
        _empty(
            "webhooks",
            "id url events secret enabled retry_limit created_at last_status_code last_error last_delivery_at",
            "webhooks",
            "/webhooks",
        ),
    ),
)

_OF_SHARD_0 = "The table is there and not filled: the records are in the state of shard 0, which decides."

ENTERPRISE = Section(
    "Enterprise tables",
    (
        _table(
            "api_keys",
            "key_hash name namespace role queue_scope enabled expires_at created_at last_used_at",
            _OF_SHARD_0,
        ),
        _table("auth_roles", "name permissions created_at updated_at", _OF_SHARD_0),
        _table("auth_key_roles", "key_hash role_name created_at", _OF_SHARD_0),
        _table(
            "audit_logs",
            "id namespace principal role method path status_code metadata created_at",
            "A view of `audit_records`, which has intent and outcome of a change in two rows.",
        ),
        _table("namespaces", "name created_at", _OF_SHARD_0),
        _table(
            "sso_settings",
            "id provider oidc_issuer_url oidc_client_id saml_enabled oidc_group_claim group_role_mappings updated_at",
            _OF_SHARD_0,
        ),
    ),
)

FIRST_ROWS = Section(
    "Rows from the start",
    (
        works(
            "schema-default-namespace",
            "namespace `default`",
            "As in the seed.",
            Sql("select name from namespaces", [("default",)]),
        ),
        works(
            "schema-sso-row",
            "SSO settings `singleton`",
            "As in the seed.",
            Sql("select id from sso_settings", [("singleton",)]),
        ),
    ),
)

TEXT = Section(
    "Full-text search and settings",
    (
        differs(
            "schema-fts",
            "`jobs_fts` (fts5: `id`, `queue`, `payload`, `tags`), by triggers",
            "One column of text, written behind the rows: [how](../explanation/read-db.md#how-texts-are-found).",
            Table("jobs_fts", "text"),
        ),
        differs("schema-fts-fallback", "`jobs_search` without FTS5", "FTS5 is required."),
        works("schema-wal", "`journal_mode = WAL`", "As in the seed.", Sql("pragma journal_mode", [("wal",)])),
        works("schema-sync", "`synchronous = OFF`", "In the mirror, the only writer."),
        differs("schema-foreign-keys", "`foreign_keys = ON`", "The mirror deletes what belongs together itself."),
    ),
)

SECTIONS = (KEYS, CORE, AI, ENTERPRISE, FIRST_ROWS, TEXT)
