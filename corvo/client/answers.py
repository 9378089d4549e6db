"""What a server answers. Written by `python -m corvo.cli.derive_client`: do not edit.

Fields that a newer server adds are ignored.
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field


class Enqueued(Struct):
    job_id: str
    status: str
    unique_existing: bool = False


class EnqueuedBatch(Struct):
    """Ids in the order of the request; where another job holds the key, the id of that job."""

    job_ids: list[str]
    batch_id: str | None = None


class FetchedJob(Struct):
    job_id: str
    queue: str
    payload: Any
    attempt: int
    max_retries: int
    lease_duration: float
    lease_token: int
    checkpoint: Any = None
    tags: Any = None


class FetchedBatch(Struct):
    jobs: list[FetchedJob]


class AckOutcome(Struct):
    """`status`, or the error."""

    status: str | None = None
    error: str | None = None
    code: str | None = None


class AckedBatch(Struct):
    acked: int
    results: list[AckOutcome]


class Acked(Struct):
    status: str = "ok"


class FailOutcome(Struct):
    """The new state of the job, or the error."""

    status: str | None = None
    attempts_remaining: int | None = None
    next_attempt_at: str | None = None
    error: str | None = None
    code: str | None = None


class FailedBatch(Struct):
    failed: int
    results: list[FailOutcome]


class Failed(Struct):
    status: str
    attempts_remaining: int
    next_attempt_at: str | None = None


class HeartbeatStatus(Struct):
    status: str


class HeartbeatAnswer(Struct):
    jobs: dict[str, HeartbeatStatus]


class Cancelled(Struct):
    status: str


class Done(Struct):
    status: str


class FailureView(Struct):
    job_id: str
    code: str
    error: str


class SampleJob(Struct):
    id: str
    queue: str
    state: str
    priority: int
    attempt: int
    created_at: str


class BulkDone(Struct):
    """The result of an action that was done within the request; with `dry_run`, of one that was not done."""

    # jobs that were changed
    affected: int
    # jobs that were refused and not changed
    errors: int
    duration_ms: float
    # jobs that matched or were listed
    matched: int
    # false: there are more
    matched_is_exact: bool = True
    dry_run: bool = False
    # refused jobs by code
    error_codes: dict[str, int] = {}
    # the first hundred of them
    error_samples: list[FailureView] = []
    # of a dry run: the oldest jobs that match
    sample: list[SampleJob] = []


class BulkStarted(Struct):
    bulk_operation_id: str
    # `processing`; `GET /bulk/{id}` shows its progress
    status: str
    # jobs that matched; a lower bound if `total_is_exact` is false
    estimated_total: int
    progress_url: str
    total_is_exact: bool = True


class BulkView(Struct, kw_only=True):
    id: str
    # queued, running, completed, failed or cancelled
    status: str
    action: str
    # jobs that matched at its start
    total: int
    # false: there were more than `total`
    total_is_exact: bool
    processed: int
    # jobs that were changed
    affected: int
    # jobs that were refused and not changed
    errors: int
    percent: float | None = None
    # jobs per second, since a gateway claimed it
    rate: float | None = None
    # remaining seconds at this rate
    eta_s: float | None = None
    # refused jobs by code
    error_codes: dict[str, int] = {}
    # the first hundred of them; not in lists
    error_samples: list[FailureView] = []
    created_at: str
    updated_at: str
    started_at: str | None = None
    finished_at: str | None = None
    cancel_requested: bool = False
    # why it failed
    error: str | None = None
    # the search; null for a list of jobs
    filter: Any = None
    move_to_queue: str | None = None
    priority: str | None = None


class BatchMade(Struct):
    batch_id: str


class Sealed(Struct):
    status: str


class ScheduleView(Struct):
    """Optional fields are left out when empty. `payload`, `tags` and `next_slots` are not shown in lists."""

    id: str
    name: str
    queue: str
    cron: str
    timezone: str
    paused: bool
    priority: str
    max_retries: int
    catch_up: str
    catch_up_max: int
    # number of slots, ever
    fired: int
    created_at: str
    updated_at: str
    next_run: str | UnsetType | None = UNSET
    last_run: str | UnsetType | None = UNSET
    # the same as `next_run`
    next_at: str | None = None
    # the slot that it last fired for
    last_slot: str | None = None
    # the same as `last_run`
    last_fired_at: str | None = None
    unique_key: str = ""
    unique_period: int = 0
    payload: Any = None
    tags: Any = None
    next_slots: list[str] = []


class DeletedSchedule(Struct):
    id: str
    name: str
    status: str = "deleted"


class QueueChanged(Struct):
    status: str


class QueueDraining(Struct):
    # `draining`, or `drained` when no job is active
    status: str
    # jobs that workers still hold
    active: int


class QueueCleared(Struct):
    status: str
    # jobs
    deleted: int


class KeyCreated(Struct, kw_only=True):
    status: str
    # the key; it is shown this once
    api_key: str
    key_hash: str
    prefix: str = ""
    expires_at: str | None = None


class KeyView(Struct, kw_only=True):
    # SHA-256 of the key; the name of the key in paths
    key_hash: str
    name: str
    # how the key begins; only of keys that the server made
    prefix: str = ""
    namespace: str
    role: str
    # custom roles that are bound to it, in addition
    roles: list[str] = []
    # globs of queue names, separated by commas; none: every queue
    queue_scope: str = ""
    enabled: bool
    created_at: str
    created_by: str = ""
    # about a minute late
    last_used_at: str | None = None
    expires_at: str | None = None
    # hash of the key that it rotates out
    replaces: str = ""
    # of the session of a person: who signed the person on
    issuer: str = ""


class AccessChanged(Struct):
    status: str


class NamespaceMade(Struct):
    name: str
    # `created`, or `exists`
    status: str


class JobSummary(Struct):
    id: str
    queue: str
    state: str
    payload: Any
    priority: int
    attempt: int
    max_retries: int
    created_at: str
    worker_id: str | None = None
    tags: Any = None
    parent_id: str | None = None
    scheduled_at: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    failed_at: str | None = None
    last_error: str | None = None
    unique_key: str | None = None
    batch_id: str | None = None
    chain_id: str | None = None
    chain_step: int | None = None
    hold_reason: str | None = None
    expire_at: str | None = None


class SearchAnswer(Struct):
    jobs: list[JobSummary]
    total: int
    total_is_exact: bool
    # more may follow: continue with `cursor`
    has_more: bool
    cursor: str | None
    duration_ms: float
    lag_ms: float
    # `at_least` if `total_is_exact` is false
    total_relation: Literal["exact", "at_least"] = "exact"
    # false: the search ran out of time before the page was full; `cursor` continues it
    is_complete: bool = True
    # true: payloads are encrypted, and the search by payload did not look into those
    sealed_unsearched: bool = False


class JobErrorView(Struct):
    id: int
    job_id: str
    attempt: int
    error: str
    created_at: str
    backtrace: str | None = None


class AttemptView(Struct):
    """One attempt of a worker, which may still run."""

    attempt: int
    worker_id: str
    outcome: str
    started_at: str | None = None
    ended_at: str | None = None
    error: str | None = None
    backtrace: str | None = None


class StepView(Struct):
    queue: str
    payload: Any


class ChainView(Struct):
    """The whole chain, as it was enqueued."""

    steps: list[StepView]
    on_failure: StepView | None = None
    on_exit: StepView | None = None


class JobView(Struct):
    """A job as clients see it. Optional fields are left out when empty."""

    id: str
    queue: str
    state: str
    payload: Any
    priority: int
    attempt: int
    max_retries: int
    retry_backoff: str
    retry_base_delay_ms: int
    retry_max_delay_ms: int
    created_at: str
    worker_id: str = ""
    hostname: str = ""
    tags: Any = None
    progress: Any = None
    checkpoint: Any = None
    result: Any = None
    parent_id: str = ""
    lease_expires_at: str | None = None
    scheduled_at: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    failed_at: str | None = None
    errors: list[JobErrorView] = []
    attempts: list[AttemptView] = []
    unique_key: str = ""
    idempotency_key: str = ""
    batch_id: str = ""
    chain_id: str = ""
    chain_step: int | None = None
    chain_config: ChainView | None = None
    schedule_id: str = ""
    expire_at: str | None = None
    waiting_for: list[str] = []
    hold_reason: str = ""
    claimed_at: str | None = None
    cancel_requested: bool = False
    retry_jitter: float | None = None


class JobsView(Struct):
    jobs: list[JobView]


class BulkProgress(Struct):
    """Data of the events `bulk.async.started`, `progress`, `completed`, `failed` and `cancelled`."""

    type: str
    task_id: str
    status: str
    total: int
    processed: int
    affected: int
    errors: int
    percent: float | None
    rate: float | None
    eta_s: float | None
    created_at_ns: int
    error: str | None = None


class CallbackView(Struct):
    queue: str
    payload: Any
    job_id: str | None = None


class BatchView(Struct):
    """A batch as clients see it. `pending` counts all members that have not ended."""

    id: str
    state: str
    total: int
    pending: int
    completed: int
    dead: int
    cancelled: int
    deleted: int
    created_at: str
    finished_at: str | None = None
    description: str = ""
    on_complete: CallbackView | None = None
    on_success: CallbackView | None = None
    on_failure: CallbackView | None = None
    succeeded: int | UnsetType = UNSET
    failed: int | UnsetType = UNSET


class BatchesAnswer(Struct):
    batches: list[BatchView]
    has_more: bool
    cursor: str | None
    lag_ms: float


class JobsAhead(Struct):
    count: int
    # false: there are more than `count`
    is_exact: bool
    by_priority: dict[str, int]


class WhyView(Struct):
    """`message` is for humans; `reason` and the fields below it for programs. Fields that do not apply are left out."""

    job_id: str
    queue: str
    state: str
    reason: str
    message: str
    # further reasons
    also: list[str] = []
    # when the reason goes away by itself
    until: str | None = None
    since: str | None = None
    active: int | None = None
    max_concurrency: int | None = None
    rate: int | None = None
    window_ms: int | None = None
    jobs_ahead: JobsAhead | None = None
    workers_waiting: bool | None = None
    last_asked_at: str | None = None
    # since when fetches from the queue are known
    known_since: str | None = None
    waits_for: list[str] = []
    waits_for_count: int | None = None
    worker_id: str = ""
    hostname: str = ""
    lease_expires_at: str | None = None
    attempt: int | None = None
    max_retries: int | None = None
    last_error: str | None = None
    hold_reason: str = ""


class FulltextHit(Struct):
    id: str
    queue: str
    state: str
    payload: Any
    tags: Any
    created_at: str


class FulltextAnswer(Struct):
    q: str
    # most recently indexed first
    results: list[FulltextHit]
    has_more: bool
    # false: too many jobs are new to check all of them
    is_complete: bool
    duration_ms: float
    lag_ms: float
    # true: payloads are encrypted, and their words are not in the index
    sealed_unsearched: bool = False


class QueueView(Struct, kw_only=True):
    name: str
    # `active`, `paused`, `draining` or `drained`
    status: str = "active"
    paused: bool = False
    max_concurrency: int | None = None
    rate_limit: int | None = None
    rate_window_ms: int | None = None
    created_at: str
    pending: int
    active: int
    held: int
    completed: int
    dead: int
    scheduled: int
    retrying: int
    cancelled: int
    # jobs, ever
    enqueued: int
    # jobs, ever
    completed_total: int = 0
    # attempts, ever
    failed: int
    # jobs, ever
    dead_total: int = 0
    # over the last full minute and the current one
    enqueued_per_s: float = 0.0
    completed_per_s: float = 0.0
    # attempts
    failed_per_s: float = 0.0
    # when the oldest pending job was created
    oldest_pending_at: str | None = None
    oldest_pending_age_ms: int | None = None


class RetentionView(Struct):
    """Milliseconds; null means for ever."""

    completed_ms: int | None
    dead_ms: int | None
    cancelled_ms: int | None


class QueueDetail(Struct, kw_only=True):
    name: str
    # `active`, `paused`, `draining` or `drained`
    status: str
    paused: bool
    draining: bool
    created_at: str
    pending: int
    active: int
    held: int
    completed: int
    dead: int
    scheduled: int
    retrying: int
    cancelled: int
    # jobs, ever
    enqueued: int
    # jobs, ever
    completed_total: int
    # attempts, ever
    failed: int
    # jobs that have not ended, held ones included
    left: int
    max_concurrency: int | None = None
    rate_limit: int | None = None
    rate_window_ms: int | None = None
    # claims that the throttle allows now
    rate_room: int | None = None
    # when it allows the next claim, if none now
    rate_room_at: str | None = None
    retention: RetentionView
    # when the job that has been pending longest became pending
    oldest_pending_at: str | None = None
    oldest_pending_age_ms: int | None = None


class WorkerView(Struct, kw_only=True):
    id: str
    hostname: str
    queues: list[str]
    last_heartbeat: str
    started_at: str
    is_waiting: bool = False
    active_jobs: int = 0
    pool_size: int = 0
    version: str = ""


class WorkerJob(Struct, kw_only=True):
    id: str
    queue: str
    attempt: int
    # of this attempt
    started_at: str | None = None
    lease_expires_at: str | None = None
    progress: Any = None


class WorkerDetail(WorkerView, kw_only=True):
    # its active jobs, longest running first, at most 1000
    jobs: list[WorkerJob]


class ThroughputPoint(Struct):
    """A minute without changes is included, with zeros."""

    # its start, RFC 3339; the last minute is not over
    minute: str
    # jobs
    enqueued: int
    # jobs
    completed: int
    # attempts
    failed: int
    # jobs
    dead: int


class ErrorGroup(Struct):
    fingerprint: str
    # where the attempts failed
    queue: str
    # the first line of the error, with placeholders for the parts that vary
    message: str
    # failures of jobs that are kept
    count: int
    first_at: str
    last_at: str
    # the newest
    sample_error: str
    sample_job_id: str


class ErrorGroupsAnswer(Struct):
    groups: list[ErrorGroup]
    # there are more groups than the limit
    has_more: bool
    lag_ms: float


class MembershipView(Struct):
    """`outgoing` is not empty during a change of voters."""

    voters: list[str] = []
    learners: list[str] = []
    outgoing: list[str] = []


class ReplicaView(Struct):
    """One replica of a shard: its own status, and what its leader knows about it."""

    node_id: str
    role: str
    term: int = 0
    commit_index: int = 0
    applied_index: int = 0
    lag: int | None = None
    last_contact_ms: float | None = None
    mode: str = ""
    log_entries: int = 0
    log_bytes: int = 0
    state_hash: str = ""
    error: str | None = None


class TransferView(Struct):
    """A state on its way from one replica to another."""

    sender: str
    receiver: str
    index: int
    records: int
    bytes: int


class BucketView(Struct):
    # upper bound in seconds; null: none
    le: float | None
    # values up to this bound
    count: int


class HistogramView(Struct):
    """Of times in seconds, since the process started."""

    count: int
    avg: float
    # half of the values are not above it; estimated from the buckets
    p50: float
    p90: float
    p99: float
    buckets: list[BucketView] = []


class SnapshotView(Struct):
    """The state on disk stands for all entries that the log no longer has; it is what another node is sent."""

    # 1, or 0 while the log still has its first entry
    count: int
    # the last entry that only the snapshot has
    latest_index: int
    # snapshots on their way to other nodes now
    transfers: int
    # of that entry
    latest_term: int = 0
    # term and index; empty while there is none
    latest_id: str = ""
    # bytes of the state on disk, estimated without reading it
    latest_size: int = 0


class ShardView(Struct):
    """The replica on the node that is asked, and its whole group."""

    shard: int
    node_id: str
    state: str
    leader_id: str
    term: int
    commit_index: int
    applied_index: int
    log_entries: int
    operations_total: int
    entries_total: int
    batch_size_avg: float
    sync_ms_avg: float
    waiting: int
    fetches_parked: int
    leases: int
    mirror_lag_entries: int
    memory_bytes: int
    error: str | None = None
    members: MembershipView = field(default_factory=MembershipView)
    replicas: list[ReplicaView] = []
    transfers: list[TransferView] = []
    # from arrival at the shard to the log
    queue_time_hist: HistogramView | None = None
    # applying one entry
    apply_time_hist: HistogramView | None = None
    snapshot: SnapshotView | None = None


class MirrorView(Struct):
    """The read database of the node that is asked. `generation` changes with each rebuild."""

    lag_ms: float
    generation: str
    rows_total: int
    rebuilt_at: str = ""
    rebuild_ms: float = 0.0


class NodeView(Struct):
    node_id: str
    address: str
    is_reachable: bool


class Incident(Struct, frozen=True):
    """A process that ended although nobody asked it to."""

    at: str
    process: str
    reason: str


class SqliteMirrorView(Struct):
    """The mirror, under the names that clients of the original know. PostgreSQL may take the place of SQLite."""

    # always true: no write waits for it
    is_async: bool = field(name="async")
    # always 0: a change that cannot be written is written later
    dropped: int
    # rows written, ever
    applied: int
    # entries that the shards have and the mirror has not acknowledged
    lag: int
    lag_ms: float


class SqliteRebuildView(Struct):
    """How the read database came to be, last time."""

    ran: bool
    last_started_at: str
    last_duration_ms: float
    last_success: bool


class ClusterStatus(Struct):
    """`status` and `reasons` are a HealthReport; `restarts` and `incidents` are of the node that is asked."""

    status: str
    mode: str
    node_id: str
    version: str
    shards: int
    fsync: bool
    groups: list[ShardView]
    mirror: MirrorView | None
    nodes: list[NodeView] = []
    reasons: list[str] = []
    restarts: dict[str, int] = {}
    incidents: list[Incident] = []
    # of all shards of this node
    queue_time_hist: HistogramView | None = None
    # of all shards of this node
    apply_time_hist: HistogramView | None = None
    sqlite_mirror: SqliteMirrorView | None = None
    sqlite_rebuild: SqliteRebuildView | None = None


class ServerInfo(Struct):
    server_version: str
    api_version: str


class GroupView(Struct):
    shard: int
    voters: list[str]
    learners: list[str]
    is_changing: bool


class MembersView(Struct):
    node_id: str
    groups: list[GroupView]


class RebuildView(Struct):
    # `building`, or `ok` at the end
    status: str
    rebuilt: bool
    # of the read database in use; changes at the end of the rebuild
    generation: str
    # how long the rebuild took, at its end
    duration_ms: float | None = None


class EventView(Struct):
    # number within its shard, which counts the events of all tenants
    seq: int
    shard: int
    type: str
    at_ns: int
    job_id: str = ""
    queue: str = ""
    data: Any = None


class EventsPage(Struct):
    events: list[EventView]
    # `after_seq` of the next page
    next: str
    has_more: bool = False
    # events after the cursor, of any tenant, that are no longer kept
    missed: int = 0


class AuthStatus(Struct):
    admin_password_set: bool
    # whether any API key is enabled
    has_keys: bool
    # `oidc`, `saml`, or empty
    sso_provider: str


class Permission(Struct, frozen=True):
    # such as `jobs`; `*`: every resource
    resource: str
    # such as `cancel`; `write`: everything but read and list; `*`: every action
    actions: tuple[str, ...]


class PrincipalView(Struct, kw_only=True):
    name: str
    # `key`, `password`, `person`, `proxy`, or `anonymous`
    kind: str
    roles: list[str]
    permissions: list[Permission]
    # that it acts in
    namespace: str
    # the namespace that it belongs to
    home: str
    # manages keys of every namespace, roles, namespaces, sign-on
    cluster_admin: bool
    # globs of queue names, separated by commas; none: every queue
    queue_scope: str = ""
    key_hash: str = ""


class KeyRoles(Struct):
    key_hash: str
    # custom roles that are bound to it, in addition to its role
    roles: list[str]


class RoleView(Struct, kw_only=True):
    name: str
    permissions: list[Permission]
    built_in: bool = False
    created_at: str | None = None
    updated_at: str | None = None


class RateLimitView(Struct):
    read_rps: float | None = None
    read_burst: float | None = None
    write_rps: float | None = None
    write_burst: float | None = None


class QuotasView(Struct):
    # jobs that are stored; 0: no limit
    max_jobs: int = 0
    # of all stored jobs together; 0: no limit
    max_payload_bytes: int = 0
    # 0: no limit
    max_queues: int = 0


class NamespaceView(Struct, kw_only=True):
    name: str
    # `active` or `deleting`
    state: str
    created_at: str | None = None
    rate_limit: RateLimitView | None = None
    quotas: QuotasView | None = None


class RateLimitAnswer(Struct):
    # the server's settings apply
    using_defaults: bool
    read_rps: float | None = None
    read_burst: float | None = None
    write_rps: float | None = None
    write_burst: float | None = None


class SsoView(Struct):
    # `oidc`, `saml`, or empty: no sign-on
    provider: str
    oidc_issuer_url: str
    oidc_client_id: str
    saml_enabled: bool
    oidc_group_claim: str
    group_role_mappings: dict[str, str]
    updated_at: str | None


class RedactionView(Struct):
    # of this queue
    paths: list[str]
    # a value is hidden everywhere when its name has one of these words
    words: list[str]


class AuditMetadata(Struct):
    duration_ms: float | None = None
    # parameters after the `?`, without secrets
    query: str = ""


class AuditLogView(Struct, kw_only=True):
    """Fields from `kind` on are left out when empty."""

    # number of the record
    id: int
    # in which it was done
    namespace: str
    # a key's name, a person's address, or `anonymous`
    principal: str
    # roles of the principal, with commas between them
    role: str
    # HTTP method
    method: str
    # of the request, without its query
    path: str
    # 0: not known, or not yet
    status_code: int
    # how long it took, and the query
    metadata: AuditMetadata
    created_at: str
    # `ok`; `refused`; `denied`: no credential or permission; `unknown`: the server stopped between the change and its
    # record
    outcome: str
    # of the principal: anonymous, password, key, person or proxy
    kind: str = ""
    # the beginning of the key's SHA-256
    key: str = ""
    # of the client
    address: str = ""
    # of the request
    request_id: str = ""
    # name of the endpoint
    route: str = ""
    # of the refusal
    code: str = ""
    # what the path names
    target: dict[str, str] = {}
    # what was asked for; secrets and payloads are never in it
    change: dict[str, Any] = {}
    # ids of what was made
    made: dict[str, str] = {}
    # settings before the change
    before: dict[str, Any] | None = None
    # settings after the change
    after: dict[str, Any] | None = None
    # denials like this one that were not recorded one by one
    suppressed: int = 0


class AuditLogsAnswer(Struct):
    # newest first
    audit_logs: list[AuditLogView]
    # all that match; counted up to 100000
    total: int
    limit: int
    # as it was asked for
    offset: int
    # false: there are more than `total`
    total_is_exact: bool
    has_more: bool
    lag_ms: float


class AuditExportLine(Struct):
    """A line between the first, `export`, and the last, `end`."""

    # number of the record
    seq: int
    # hash of the record before it
    prev: str
    # SHA-256 of `prev`, as 32 bytes, and the bytes of `record`
    hash: str
    # the record, byte for byte as it was stored
    record: dict[str, Any]


class LoggedIn(Struct):
    """The cookie is in the header `Set-Cookie`."""

    status: str
    name: str
    # roles of the credential
    roles: list[str]
    # namespace that it acts in
    namespace: str


class LoggedOut(Struct):
    status: str


class Gap(Struct):
    """Data of the event `gap`: how many events of a shard, of any tenant, came after the cursor and are no longer
    kept."""

    shard: int
    missed: int
