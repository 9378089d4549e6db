"""What a client sends. Written by `python -m corvo.cli.derive_client`: do not edit.

A field that is left at its default is not sent. Documents (payload, tags, result and so on) are any value that msgspec
can write as JSON, or JSON itself as `msgspec.Raw`.
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field


class Body(Struct, forbid_unknown_fields=True):
    """A body of a request, or a part of one. Made from JSON, it refuses unknown fields, as the server does."""


class StepBody(Body):
    # 1 to 200 characters of letters, digits and `._:/-`, beginning with a letter or digit
    queue: str
    payload: Any = UNSET


class ChainBody(Body):
    steps: list[StepBody]
    on_failure: StepBody | None = None
    on_exit: StepBody | None = None


class JobTerms(Body, kw_only=True):
    """Optional fields of an enqueue body. Most jobs have none of them."""

    # no job is created while another job of the queue holds it
    unique_key: str | None = None
    # seconds that the job holds its key at most; default one hour
    unique_period: int | None = None
    # when the key is free again: at the job's end, only after the period, or when it is claimed
    unique_until: Literal["done", "period", "start"] = "done"
    # no job is created while another job of the queue with this key is kept
    idempotency_key: str | None = None
    # `1h`: the job becomes dead if it is not done an hour after creation; 0: never
    expire_after: str | None = None
    # the same in milliseconds; takes precedence
    expire_after_ms: int | None = None
    # fraction of a retry delay by which it may be shortened at random
    retry_jitter: float = 0.0
    # jobs that must be completed before it runs
    depends_on: list[str] = []
    # what happens to the job when one of them is dead, cancelled or deleted
    on_dependency_failure: Literal["fail", "cancel", "run"] = "fail"
    # jobs that follow one after another
    chain: ChainBody | None = None


class EnqueueBody(JobTerms):
    # 1 to 200 characters of letters, digits and `._:/-`, beginning with a letter or digit
    queue: str
    payload: Any = UNSET
    priority: Literal["critical", "high", "normal"] | int = "normal"
    # attempts in total
    max_retries: int = 3
    retry_backoff: Literal["none", "fixed", "linear", "exponential"] = "exponential"
    retry_base_delay: str | None = None
    retry_max_delay: str | None = None
    retry_base_delay_ms: int | None = None
    retry_max_delay_ms: int | None = None
    # earliest start: RFC 3339, or a date
    scheduled_at: str | None = None
    # earliest start, as a duration from now: `10m`
    delay: str | None = None
    # the same in milliseconds; takes precedence
    delay_ms: int | None = None
    tags: Any = UNSET
    checkpoint: Any = UNSET
    parent_id: str | None = None
    # an open batch that the job is added to
    batch_id: str | None = None


class BatchBody(Body):
    """`callback_queue` and `callback_payload` are the older names of `on_complete`."""

    callback_queue: str | None = None
    callback_payload: Any = UNSET
    # job that is created when all jobs have ended
    on_complete: StepBody | None = None
    # … and all of them completed
    on_success: StepBody | None = None
    # … and at least one did not complete
    on_failure: StepBody | None = None
    description: str = ""


class EnqueueBatchBody(Body):
    jobs: list[EnqueueBody]
    # create a batch of these jobs and seal it
    batch: BatchBody | None = None
    # an open batch that all jobs are added to
    batch_id: str | None = None


class FetchOptions(Body, kw_only=True):
    """Optional fields of a fetch. Most fetches have none of them."""

    # `strict`: queues in the given order; `weighted`: in a random order by weight
    strategy: Literal["strict", "weighted"] = "strict"
    # by queue, for `weighted`; default 1
    weights: dict[str, int] = {}
    # the job counts as started with its first heartbeat, not with the claim
    two_phase: bool = False
    # jobs that the worker can run at a time
    pool_size: int = 0
    # of the worker's program
    version: str = ""


class FetchBody(FetchOptions):
    queues: list[str]
    # 1 to 200 characters of letters, digits and `._:/@+-`, beginning with a letter or digit
    worker_id: str
    hostname: str = ""
    # seconds to wait for a job; more than 60 count as 60
    timeout: float = 30.0
    # seconds until the lease expires without a heartbeat
    lease_duration: float = 60.0


class FetchBatchBody(FetchBody):
    count: int = 1


class AckBody(Body):
    result: Any = UNSET
    checkpoint: Any = UNSET
    lease_token: int | None = None
    # of a chain's step: `exit` ends the chain with this job
    step_status: Literal["continue", "exit"] | None = None
    exit_reason: str = ""


class AckBatchItem(AckBody, kw_only=True):
    job_id: str


class AckBatchBody(Body):
    acks: list[AckBatchItem]


class FailBody(Body):
    error: str = ""
    backtrace: str | None = None
    lease_token: int | None = None
    # false: dead at once, even with attempts left
    retry: bool = True
    # delay before the next attempt, such as `90s`
    retry_after: str | None = None
    retry_after_ms: int | None = None
    # postpone the job by this duration; uses no attempt
    snooze: str | None = None
    snooze_ms: int | None = None


class FailBatchItem(FailBody, kw_only=True):
    job_id: str


class FailBatchBody(Body):
    fails: list[FailBatchItem]


class HeartbeatJob(Body):
    progress: Any = UNSET
    checkpoint: Any = UNSET
    lease_token: int | None = None


class HeartbeatBody(Body):
    jobs: dict[str, HeartbeatJob]


class CancelBody(Body):
    # how long the worker of an active job may take to stop: `90s`, or seconds; 0: stop at once
    grace: str | float | None = None


class HoldBody(Body):
    # for people; shown with the job
    reason: str = ""


class RejectBody(Body):
    # for people; shown with the job
    reason: str = ""


class MoveBody(Body):
    # 1 to 200 characters of letters, digits and `._:/-`, beginning with a letter or digit
    queue: str
    # count its attempts from zero again
    reset_attempts: bool = False
    # false: it is `normal` in its new queue
    keep_priority: bool = True


class PriorityBody(Body):
    priority: Literal["critical", "high", "normal"]


class RescheduleBody(Body):
    # not before this time: RFC 3339, or a date
    scheduled_at: str | None = None
    # not before this delay from now: `10m`
    delay: str | None = None
    # the same in milliseconds; takes precedence
    delay_ms: int | None = None


class ReplayBody(Body):
    # the iteration to start after; a job without iterations starts at its checkpoint
    iteration: int = field(name="from")


class SearchBody(Body):
    """Filters, all of which must match. `_after` and `_before` exclude the given time."""

    queue: str | None = None
    # any of these; default all states
    state: list[Literal["pending", "active", "completed", "retrying", "dead", "cancelled", "scheduled", "held"]] = []
    priority: Literal["critical", "high", "normal"] | None = None
    worker_id: str | None = None
    job_id_prefix: str | None = None
    parent_id: str | None = None
    unique_key: str | None = None
    batch_id: str | None = None
    chain_id: str | None = None
    # all of these, type included
    tags: dict[str, str | int | float | bool] = {}
    payload_contains: str | None = None
    payload_jq: str | None = None
    has_errors: bool | None = None
    error_contains: str | None = None
    attempt_min: int | None = None
    attempt_max: int | None = None
    created_after: str | None = None
    created_before: str | None = None
    scheduled_after: str | None = None
    scheduled_before: str | None = None
    started_after: str | None = None
    started_before: str | None = None
    completed_after: str | None = None
    completed_before: str | None = None
    expire_after: str | None = None
    expire_before: str | None = None
    # jobs without such a time come last, in either order
    sort: Literal["created_at", "priority", "started_at", "completed_at", "attempt", "scheduled_at", "failed_at"] = (
        "created_at"
    )
    order: Literal["asc", "desc"] = "desc"
    cursor: str | None = None
    limit: int = 50
    # include every change that was acknowledged before this request
    consistent: bool = False


class BulkBody(Body, kw_only=True):
    action: Literal["retry", "requeue", "delete", "cancel", "move", "change_priority", "hold", "approve", "reject"]
    job_ids: list[str] | None = None
    # all jobs that match, as in a search, without paging
    filter: SearchBody | None = None
    # of `move`
    move_to_queue: str | None = None
    # of `move`: true counts the attempts of each job from zero again
    reset_attempts: bool | None = None
    # of `move`: false gives each job the priority `normal` in its new queue
    keep_priority: bool | None = None
    # of `change_priority`
    priority: Literal["critical", "high", "normal"] | None = None
    # for people; shown with the job
    reason: str = ""
    # of `cancel`: how long the worker of an active job may take to stop
    grace: str | float | None = None
    # count, show a few, change nothing
    dry_run: bool = False
    # run it in the background, however few jobs match
    is_async: bool = field(default=False, name="async")


class CreateScheduleBody(Body):
    # 1 to 200 characters of letters, digits and `._:-`, beginning with a letter or digit
    name: str
    # 1 to 200 characters of letters, digits and `._:/-`, beginning with a letter or digit
    queue: str
    # five fields, six with the seconds last, `@daily`, `@every 90s` …
    cron: str
    # a name of the IANA time zone database, such as Europe/Berlin
    timezone: str = "UTC"
    payload: Any = UNSET
    priority: Literal["critical", "high", "normal"] = "normal"
    # attempts in total
    max_retries: int = 3
    tags: Any = UNSET
    # up to 256 characters, none of them a control character: while a job of the queue holds it, a slot makes no further
    # one; empty: none
    unique_key: str = ""
    # seconds that a job holds its key at most; 0: an hour
    unique_period: int = 0
    catch_up: Literal["skip", "last", "all"] = "last"
    # how many of the newest missed slots fire with `all`
    catch_up_max: int = 100


class UpdateScheduleBody(Body):
    name: str | None = None
    queue: str | None = None
    cron: str | None = None
    timezone: str | None = None
    payload: Any = UNSET
    priority: Literal["critical", "high", "normal"] | None = None
    max_retries: int | None = None
    tags: Any = UNSET
    unique_key: str | None = None
    unique_period: int | None = None
    catch_up: Literal["skip", "last", "all"] | None = None
    catch_up_max: int | None = None


class DeleteQueueQuery(Struct, forbid_unknown_fields=True):
    # must be true
    confirm: bool = False
    # also while jobs are active
    force: bool = False


class ConcurrencyBody(Body):
    # jobs active at a time; 0 or less: no limit
    max: int


class ThrottleBody(Body):
    # claims
    rate: int
    # within any period of this length, 1 s to 1 day
    window_ms: int | None = None
    # the same as a duration: `1m`; window_ms takes precedence
    period: str | None = None


class RetentionBody(Body):
    completed: str | UnsetType | None = UNSET
    dead: str | UnsetType | None = UNSET
    cancelled: str | UnsetType | None = UNSET


class RedactionBody(Body):
    # such as `customer.email`, `items.*.iban`, `**.note`; none: only what is always hidden
    paths: list[str]


class CreateKeyBody(Body):
    # 1 to 256 characters, none of them a control character; shown in lists and in the audit log
    name: str
    # 20 to 256 visible ASCII characters; if none is given, the server makes one
    key: str | None = None
    # default: the one that the request acts in
    namespace: str | None = None
    # 1 to 64 characters of letters, digits and `._:-`, beginning with a letter or digit
    role: str = "readonly"
    # globs of queue names, as a list or separated by commas; none: every queue of the namespace
    queue_scope: str | list[str] | None = None
    # RFC 3339, or a date; none: it does not expire
    expires_at: str | None = None
    enabled: bool = True


class UpdateKeyBody(Body):
    name: str | None = None
    # false: the key is refused until it is enabled again
    enabled: bool | None = None
    role: str | None = None
    queue_scope: str | list[str] | UnsetType | None = UNSET
    expires_at: str | UnsetType | None = UNSET


class RotateKeyBody(Body):
    # how long the old key still works: `24h`; `0s`: not at all
    overlap: str = "24h"
    # 20 to 256 visible ASCII characters; if none is given, the server makes one
    key: str | None = None


class DeleteKeyBody(Body):
    # SHA-256 of the key, in hexadecimal digits
    key_hash: str


class BindRoleBody(Body):
    # 1 to 64 characters of letters, digits and `._:-`, beginning with a letter or digit
    role: str


class Permission(Struct, frozen=True):
    # such as `jobs`; `*`: every resource
    resource: str
    # such as `cancel`; `write`: everything but read and list; `*`: every action
    actions: tuple[str, ...]


class PutRoleBody(Body):
    # 1 to 64 characters of letters, digits and `._:-`, beginning with a letter or digit
    name: str
    # at most 4 KiB as JSON
    permissions: tuple[Permission, ...]


class CreateNamespaceBody(Body):
    # 1 to 63 lower-case letters, digits and hyphens, no hyphen at the ends
    name: str


class RateLimitBody(Body):
    # requests a second; null: the server's setting
    read_rps: float | None = None
    # requests at once; null: the server's setting
    read_burst: float | None = None
    # requests a second; null: the server's setting
    write_rps: float | None = None
    # requests at once; null: the server's setting
    write_burst: float | None = None


class QuotasBody(Body):
    # jobs that are stored; 0: no limit
    max_jobs: int = 0
    # of all stored jobs together; 0: no limit
    max_payload_bytes: int = 0
    # 0: no limit
    max_queues: int = 0


class SsoBody(Body):
    # empty: no sign-on
    provider: Literal["", "oidc", "saml"] = ""
    # begins with https:// or http://
    oidc_issuer_url: str = ""
    oidc_client_id: str = ""
    # trust a proxy's headers, from the addresses in the settings
    saml_enabled: bool = False
    oidc_group_claim: str = "groups"
    # group → role
    group_role_mappings: dict[str, str] = {}


class StateListQuery(Struct, forbid_unknown_fields=True):
    queue: str | None = None
    # by creation
    order: Literal["asc", "desc"] = "desc"
    limit: int = 50
    cursor: str | None = None
    # include every change that was acknowledged before this request
    consistent: bool = False


class JobQuery(Struct, forbid_unknown_fields=True):
    # show values with secret names too; needs the permission `payloads:reveal`
    reveal: bool = False


class BulkGetBody(Body):
    job_ids: list[str]


class BulksQuery(Struct, forbid_unknown_fields=True):
    # most ended operations to return
    limit: int = 100


class BatchesQuery(Struct, forbid_unknown_fields=True):
    state: Literal["open", "sealed", "completed"] | None = None
    limit: int = 50
    cursor: str | None = None
    # include every change that was acknowledged before this request
    consistent: bool = False


class FulltextQuery(Struct, forbid_unknown_fields=True):
    # words that must all occur
    q: str
    limit: int = 50
    # include every change that was acknowledged before this request
    consistent: bool = False


class QueuesQuery(Struct, forbid_unknown_fields=True):
    consistent: bool = False


class ThroughputQuery(Struct, forbid_unknown_fields=True):
    # number of minutes, the current one included
    minutes: int = 60
    # include every change that was acknowledged before this request
    consistent: bool = False


class ErrorGroupsQuery(Struct, forbid_unknown_fields=True):
    queue: str | None = None
    since: str | None = None
    limit: int = 50
    # include every change that was acknowledged before this request
    consistent: bool = False


class JoinBody(Body):
    # 1 to 63 characters of letters, digits and `._-`, beginning with a letter or digit
    node_id: str
    # `host:port` at which other nodes reach its first shard
    address: str | None = None
    # the same; one of the two is needed
    addr: str | None = None


class RemoveBody(Body):
    # 1 to 63 characters of letters, digits and `._-`, beginning with a letter or digit
    node_id: str


class TransferBody(Body):
    # 1 to 63 characters of letters, digits and `._-`, beginning with a letter or digit
    node_id: str
    shard: int | None = None


class RebuildQuery(Struct, forbid_unknown_fields=True):
    # answer at the end, or after a minute; default: true for `rebuild-sqlite`, otherwise false
    wait: bool | None = None


class EventsQuery(Struct, forbid_unknown_fields=True):
    # continue after this event; the header `Last-Event-ID` takes precedence
    last_event_id: str = ""
    # the same
    after: str = ""
    # `start`: with the oldest event that is kept
    begin: str = field(default="", name="from")
    # names separated by commas
    queues: str = ""
    # names separated by commas
    job_ids: str = ""
    # names separated by commas
    types: str = ""


class EventsPageQuery(Struct, forbid_unknown_fields=True):
    # `next` of the previous page; 0 or empty: from the oldest event
    after_seq: str = ""
    limit: int = 100
    # names separated by commas
    queues: str = ""
    # names separated by commas
    job_ids: str = ""
    # names separated by commas
    types: str = ""


class KeysQuery(Struct, forbid_unknown_fields=True):
    # only keys of this namespace
    namespace: str = ""


class AuditLogsQuery(Struct, forbid_unknown_fields=True):
    limit: int = 100
    # leave out the newest so many
    offset: int = 0
    # only older records than this one; 0: from the newest
    before_id: int = 0
    # a key's name, a person's address
    principal: str = ""
    # such as `DELETE`
    method: str = ""
    # such as `/api/v1/queues/`
    path_prefix: str = ""
    # only this one; others than your own need a key of the whole cluster
    namespace: str = ""
    # RFC 3339, or a date
    since: str = ""
    # the same; this moment is not included
    until: str = ""
    # only these
    outcome: Literal["", "ok", "refused", "denied", "unknown"] = ""
    # include every change that was acknowledged before this request
    consistent: bool = False


class AuditExportQuery(Struct, forbid_unknown_fields=True):
    # continue after this record
    after: int = 0
    # only this one; others than your own need a key of the whole cluster
    namespace: str = ""


class LoginBody(Body):
    """One of the two."""

    # an API key
    key: str = ""
    # the admin password
    password: str = ""
