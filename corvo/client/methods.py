"""A method for each endpoint. Written by `python -m corvo.cli.derive_client`: do not edit."""

from typing import TypeVar

from .answers import (
    AccessChanged,
    Acked,
    AckedBatch,
    AuditLogsAnswer,
    AuthStatus,
    BatchesAnswer,
    BatchMade,
    BatchView,
    BulkDone,
    BulkStarted,
    BulkView,
    Cancelled,
    ClusterStatus,
    DeletedSchedule,
    Done,
    Enqueued,
    EnqueuedBatch,
    ErrorGroupsAnswer,
    EventsPage,
    Failed,
    FailedBatch,
    FetchedBatch,
    FetchedJob,
    FulltextAnswer,
    HeartbeatAnswer,
    JobsView,
    JobView,
    KeyCreated,
    KeyRoles,
    KeyView,
    LoggedIn,
    LoggedOut,
    MembersView,
    NamespaceMade,
    NamespaceView,
    PrincipalView,
    QueueChanged,
    QueueCleared,
    QueueDetail,
    QueueDraining,
    QueueView,
    QuotasView,
    RateLimitAnswer,
    RebuildView,
    RedactionView,
    RoleView,
    ScheduleView,
    Sealed,
    SearchAnswer,
    ServerInfo,
    SsoView,
    ThroughputPoint,
    WhyView,
    WorkerDetail,
    WorkerView,
)
from .bodies import (
    AckBatchBody,
    AckBody,
    AuditLogsQuery,
    BatchBody,
    BatchesQuery,
    BindRoleBody,
    BulkBody,
    BulkGetBody,
    BulksQuery,
    CancelBody,
    ConcurrencyBody,
    CreateKeyBody,
    CreateNamespaceBody,
    CreateScheduleBody,
    DeleteKeyBody,
    DeleteQueueQuery,
    EnqueueBatchBody,
    EnqueueBody,
    ErrorGroupsQuery,
    EventsPageQuery,
    FailBatchBody,
    FailBody,
    FetchBatchBody,
    FetchBody,
    FulltextQuery,
    HeartbeatBody,
    HoldBody,
    JobQuery,
    JoinBody,
    KeysQuery,
    LoginBody,
    MoveBody,
    PriorityBody,
    PutRoleBody,
    QueuesQuery,
    QuotasBody,
    RateLimitBody,
    RebuildQuery,
    RedactionBody,
    RejectBody,
    RemoveBody,
    ReplayBody,
    RescheduleBody,
    RetentionBody,
    RotateKeyBody,
    SearchBody,
    SsoBody,
    StateListQuery,
    ThrottleBody,
    ThroughputQuery,
    TransferBody,
    UpdateKeyBody,
    UpdateScheduleBody,
)
from .calls import HttpCall, call_of

A = TypeVar("A")


class Methods:
    def call(self, call: HttpCall[A]) -> A:
        raise NotImplementedError

    def enqueue(self, body: EnqueueBody) -> Enqueued:
        """Enqueue one job."""
        return self.call(call_of("enqueue", body))

    def enqueue_batch(self, body: EnqueueBatchBody) -> EnqueuedBatch:
        """Enqueue up to 1000 jobs, on any queues, with or without a batch."""
        return self.call(call_of("enqueue_batch", body))

    def fetch(self, body: FetchBody) -> FetchedJob | None:
        """Claim one job, waiting if there is none."""
        return self.call(call_of("fetch", body))

    def fetch_batch(self, body: FetchBatchBody) -> FetchedBatch:
        """Claim up to `count` jobs, waiting until there is at least one."""
        return self.call(call_of("fetch_batch", body))

    def ack_batch(self, body: AckBatchBody) -> AckedBatch:
        """Complete up to 512 jobs; each has its own result."""
        return self.call(call_of("ack_batch", body))

    def ack(self, job_id: str, body: AckBody | None = None) -> Acked:
        """Complete a job."""
        return self.call(call_of("ack", body, job_id=job_id))

    def fail_batch(self, body: FailBatchBody) -> FailedBatch:
        """Fail up to 512 jobs; each has its own result."""
        return self.call(call_of("fail_batch", body))

    def fail(self, job_id: str, body: FailBody | None = None) -> Failed:
        """Report that an attempt failed."""
        return self.call(call_of("fail", body, job_id=job_id))

    def heartbeat(self, body: HeartbeatBody) -> HeartbeatAnswer:
        """Renew leases, report progress, learn of cancellations."""
        return self.call(call_of("heartbeat", body))

    def cancel(self, job_id: str, body: CancelBody | None = None) -> Cancelled:
        """Cancel a job that has not ended; the worker of an active job gets time to stop."""
        return self.call(call_of("cancel", body, job_id=job_id))

    def retry(self, job_id: str) -> Done:
        """Run an ended job again, or a scheduled job at once, with all its attempts."""
        return self.call(call_of("retry", job_id=job_id))

    def requeue(self, job_id: str) -> Done:
        """Run a dead job once more; its attempts are not reset."""
        return self.call(call_of("requeue", job_id=job_id))

    def hold(self, job_id: str, body: HoldBody | None = None) -> Done:
        """Keep a job from running until it is approved or rejected."""
        return self.call(call_of("hold", body, job_id=job_id))

    def approve(self, job_id: str) -> Done:
        """Let a held job run."""
        return self.call(call_of("approve", job_id=job_id))

    def reject(self, job_id: str, body: RejectBody | None = None) -> Done:
        """End a held job without running it."""
        return self.call(call_of("reject", body, job_id=job_id))

    def move(self, job_id: str, body: MoveBody) -> Done:
        """Move a job that is not active to another queue; it keeps its id."""
        return self.call(call_of("move", body, job_id=job_id))

    def change_priority(self, job_id: str, body: PriorityBody) -> Done:
        """Change the priority of a waiting job."""
        return self.call(call_of("change_priority", body, job_id=job_id))

    def reschedule(self, job_id: str, body: RescheduleBody) -> Done:
        """Change the time at which a waiting job runs."""
        return self.call(call_of("reschedule", body, job_id=job_id))

    def replay(self, job_id: str, body: ReplayBody) -> Enqueued:
        """Enqueue a new job that starts at the checkpoint of this one."""
        return self.call(call_of("replay", body, job_id=job_id))

    def delete_job(self, job_id: str) -> Done:
        """Delete a job in any state, with its history."""
        return self.call(call_of("delete_job", job_id=job_id))

    def bulk(self, body: BulkBody) -> BulkDone | BulkStarted:
        """One action on many jobs on all shards: a list of ids, or all that match a filter."""
        return self.call(call_of("bulk", body))

    def cancel_bulk(self, bulk_id: str) -> BulkView:
        """Stop a bulk operation after its current slice; changes that it made stay."""
        return self.call(call_of("cancel_bulk", bulk_id=bulk_id))

    def create_batch(self, body: BatchBody | None = None) -> BatchMade:
        """Open a batch, to which jobs can be added until it is sealed."""
        return self.call(call_of("create_batch", body))

    def seal_batch(self, batch_id: str) -> Sealed:
        """Seal a batch: when all its jobs have ended, its callback jobs are created."""
        return self.call(call_of("seal_batch", batch_id=batch_id))

    def seal_batch_by_its_old_path(self, batch_id: str) -> Sealed:
        """The same under the path that published clients use."""
        return self.call(call_of("seal_batch_by_its_old_path", batch_id=batch_id))

    def create_schedule(self, body: CreateScheduleBody) -> ScheduleView:
        """Create a cron schedule; if it exists with the same fields, it is returned."""
        return self.call(call_of("create_schedule", body))

    def update_schedule(self, schedule_id: str, body: UpdateScheduleBody) -> ScheduleView:
        """Change a schedule, by its id or name; fields that are not given stay."""
        return self.call(call_of("update_schedule", body, schedule_id=schedule_id))

    def delete_schedule(self, schedule_id: str) -> DeletedSchedule:
        """Delete a schedule; its jobs stay."""
        return self.call(call_of("delete_schedule", schedule_id=schedule_id))

    def pause_schedule(self, schedule_id: str) -> ScheduleView:
        """Pause a schedule: no slot fires until it is resumed."""
        return self.call(call_of("pause_schedule", schedule_id=schedule_id))

    def resume_schedule(self, schedule_id: str) -> ScheduleView:
        """Resume a paused schedule: its slots fire again from now on."""
        return self.call(call_of("resume_schedule", schedule_id=schedule_id))

    def run_schedule(self, schedule_id: str) -> Enqueued:
        """Create the job of a schedule at once, in addition to its slots."""
        return self.call(call_of("run_schedule", schedule_id=schedule_id))

    def pause_queue(self, name: str) -> QueueChanged:
        """Stop claims from a queue; it is created if it does not exist."""
        return self.call(call_of("pause_queue", name=name))

    def resume_queue(self, name: str) -> QueueChanged:
        """Allow claims from a queue again, after a pause or a drain."""
        return self.call(call_of("resume_queue", name=name))

    def drain_queue(self, name: str) -> QueueDraining:
        """Stop claims from a queue, and report how many jobs are still active."""
        return self.call(call_of("drain_queue", name=name))

    def clear_queue(self, name: str) -> QueueCleared:
        """Delete the waiting jobs of a queue: pending, scheduled and retrying."""
        return self.call(call_of("clear_queue", name=name))

    def delete_queue(self, name: str, query: DeleteQueueQuery | None = None) -> QueueChanged:
        """Delete a queue and all its jobs."""
        return self.call(call_of("delete_queue", None, query, name=name))

    def set_concurrency(self, name: str, body: ConcurrencyBody) -> QueueChanged:
        """Limit how many jobs of a queue are active at a time."""
        return self.call(call_of("set_concurrency", body, name=name))

    def set_throttle(self, name: str, body: ThrottleBody) -> QueueChanged:
        """Limit the rate of claims from a queue."""
        return self.call(call_of("set_throttle", body, name=name))

    def remove_throttle(self, name: str) -> QueueChanged:
        """Remove the throttle of a queue."""
        return self.call(call_of("remove_throttle", name=name))

    def set_retention(self, name: str, body: RetentionBody) -> QueueChanged:
        """Set how long jobs of a queue are kept after their end."""
        return self.call(call_of("set_retention", body, name=name))

    def set_redaction(self, name: str, body: RedactionBody) -> QueueChanged:
        """Set which values of its jobs' documents people do not see; replaces the paths before."""
        return self.call(call_of("set_redaction", body, name=name))

    def create_key(self, body: CreateKeyBody) -> KeyCreated:
        """Create an API key; the answer shows it once."""
        return self.call(call_of("create_key", body))

    def update_key(self, key_hash: str, body: UpdateKeyBody) -> KeyView:
        """Enable, disable or rename an API key, change its role, scope or expiry; what is not given stays."""
        return self.call(call_of("update_key", body, key_hash=key_hash))

    def rotate_key(self, key_hash: str, body: RotateKeyBody | None = None) -> KeyCreated:
        """Replace an API key; the old one still works for a while, and the answer shows the new one once."""
        return self.call(call_of("rotate_key", body, key_hash=key_hash))

    def delete_key(self, body: DeleteKeyBody) -> AccessChanged:
        """Delete an API key; it is refused from now on."""
        return self.call(call_of("delete_key", body))

    def revoke_key(self, key_hash: str) -> AccessChanged:
        """The same, for clients that cannot send a body with DELETE."""
        return self.call(call_of("revoke_key", key_hash=key_hash))

    def bind_role(self, key_hash: str, body: BindRoleBody) -> AccessChanged:
        """Give an API key a role, in addition to those that it has."""
        return self.call(call_of("bind_role", body, key_hash=key_hash))

    def unbind_role(self, key_hash: str, role: str) -> AccessChanged:
        """Take a role from an API key."""
        return self.call(call_of("unbind_role", key_hash=key_hash, role=role))

    def put_role(self, body: PutRoleBody) -> AccessChanged:
        """Create a custom role, or change its permissions."""
        return self.call(call_of("put_role", body))

    def delete_role(self, role: str) -> AccessChanged:
        """Delete a custom role, and take it from all keys."""
        return self.call(call_of("delete_role", role=role))

    def create_namespace(self, body: CreateNamespaceBody) -> NamespaceMade:
        """Create a namespace: a tenant with queues, jobs and keys of its own."""
        return self.call(call_of("create_namespace", body))

    def delete_namespace(self, namespace: str) -> AccessChanged:
        """Delete a namespace that has no keys."""
        return self.call(call_of("delete_namespace", namespace=namespace))

    def set_namespace_rate_limit(self, namespace: str, body: RateLimitBody) -> AccessChanged:
        """Set how many requests a namespace may send."""
        return self.call(call_of("set_namespace_rate_limit", body, namespace=namespace))

    def set_namespace_quotas(self, namespace: str, body: QuotasBody) -> AccessChanged:
        """Set how much a namespace may store; what is not given has no limit."""
        return self.call(call_of("set_namespace_quotas", body, namespace=namespace))

    def set_sso_settings(self, body: SsoBody) -> AccessChanged:
        """Change the settings of single sign-on."""
        return self.call(call_of("set_sso_settings", body))

    def dead(self, query: StateListQuery | None = None) -> SearchAnswer:
        """Jobs that have no attempts left."""
        return self.call(call_of("dead", None, query))

    def held(self, query: StateListQuery | None = None) -> SearchAnswer:
        """Jobs that wait for approval."""
        return self.call(call_of("held", None, query))

    def get_job(self, job_id: str, query: JobQuery | None = None) -> JobView:
        """One job with the history of its failures."""
        return self.call(call_of("get_job", None, query, job_id=job_id))

    def bulk_get(self, body: BulkGetBody) -> JobsView:
        """Many jobs by their ids, in that order; unknown ids are left out."""
        return self.call(call_of("bulk_get", body))

    def bulks(self, query: BulksQuery | None = None) -> list[BulkView]:
        """Bulk operations, newest first."""
        return self.call(call_of("bulks", None, query))

    def get_bulk(self, bulk_id: str) -> BulkView:
        """One bulk operation: its progress and its errors."""
        return self.call(call_of("get_bulk", bulk_id=bulk_id))

    def get_batch(self, batch_id: str) -> BatchView:
        """One batch with the outcomes of its jobs."""
        return self.call(call_of("get_batch", batch_id=batch_id))

    def batches(self, query: BatchesQuery | None = None) -> BatchesAnswer:
        """The batches of all shards, newest first."""
        return self.call(call_of("batches", None, query))

    def why(self, job_id: str) -> WhyView:
        """Why a job is not running."""
        return self.call(call_of("why", job_id=job_id))

    def schedules(self) -> list[ScheduleView]:
        """All cron schedules by name."""
        return self.call(call_of("schedules"))

    def get_schedule(self, schedule_id: str) -> ScheduleView:
        """One schedule, by its id or name, with its next slots."""
        return self.call(call_of("get_schedule", schedule_id=schedule_id))

    def search(self, body: SearchBody | None = None) -> SearchAnswer:
        """Search the jobs of all shards."""
        return self.call(call_of("search", body))

    def fulltext(self, query: FulltextQuery) -> FulltextAnswer:
        """Jobs whose payload, tags, result or errors contain all of these words."""
        return self.call(call_of("fulltext", None, query))

    def queues(self, query: QueuesQuery | None = None) -> list[QueueView]:
        """All queues with their counts and rates."""
        return self.call(call_of("queues", None, query))

    def get_queue(self, name: str) -> QueueDetail:
        """One queue with its counts, its limits and its remaining jobs."""
        return self.call(call_of("get_queue", name=name))

    def workers(self) -> list[WorkerView]:
        """Workers, newest first."""
        return self.call(call_of("workers"))

    def get_worker(self, worker_id: str) -> WorkerDetail:
        """One worker with its active jobs."""
        return self.call(call_of("get_worker", worker_id=worker_id))

    def throughput(self, query: ThroughputQuery | None = None) -> list[ThroughputPoint]:
        """Counts by the minute over all queues; kept for a day."""
        return self.call(call_of("throughput", None, query))

    def queue_throughput(self, name: str, query: ThroughputQuery | None = None) -> list[ThroughputPoint]:
        """Counts of a queue by the minute; kept for a day."""
        return self.call(call_of("queue_throughput", None, query, name=name))

    def error_groups(self, query: ErrorGroupsQuery | None = None) -> ErrorGroupsAnswer:
        """Failures grouped by their message, the most frequent first."""
        return self.call(call_of("error_groups", None, query))

    def cluster_status(self) -> ClusterStatus:
        """Status and figures of every shard and all its replicas."""
        return self.call(call_of("cluster_status"))

    def info(self) -> ServerInfo:
        """Versions of the server and the API."""
        return self.call(call_of("info"))

    def cluster_join(self, body: JoinBody) -> MembersView:
        """Add a node to every shard's group: it receives the log, and votes once it has caught up."""
        return self.call(call_of("cluster_join", body))

    def cluster_remove(self, body: RemoveBody) -> MembersView:
        """Remove a node from every shard's group."""
        return self.call(call_of("cluster_remove", body))

    def cluster_transfer(self, body: TransferBody) -> MembersView:
        """Transfer the leadership of one shard, or of all, to a node."""
        return self.call(call_of("cluster_transfer", body))

    def rebuild_read_db(self, query: RebuildQuery | None = None) -> RebuildView:
        """Rebuild this node's read database beside the one in use, then replace it."""
        return self.call(call_of("rebuild_read_db", None, query))

    def rebuild_sqlite(self, query: RebuildQuery | None = None) -> RebuildView:
        """The same, under the path of older clients."""
        return self.call(call_of("rebuild_sqlite", None, query))

    def cluster_events(self, query: EventsPageQuery | None = None) -> EventsPage:
        """One page of the events that are kept."""
        return self.call(call_of("cluster_events", None, query))

    def auth_status(self) -> AuthStatus:
        """How this server authenticates."""
        return self.call(call_of("auth_status"))

    def whoami(self) -> PrincipalView:
        """The principal of this request: its roles, permissions, namespace and scope."""
        return self.call(call_of("whoami"))

    def api_keys(self, query: KeysQuery | None = None) -> list[KeyView]:
        """API keys, oldest first: a cluster administrator sees all, others those of their namespace."""
        return self.call(call_of("api_keys", None, query))

    def key_roles(self, key_hash: str) -> KeyRoles:
        """Custom roles that are bound to an API key."""
        return self.call(call_of("key_roles", key_hash=key_hash))

    def roles(self) -> list[RoleView]:
        """Roles and their permissions, the built-in ones first."""
        return self.call(call_of("roles"))

    def namespaces(self) -> list[NamespaceView]:
        """Namespaces by name; a tenant sees its own."""
        return self.call(call_of("namespaces"))

    def namespace_rate_limit(self, namespace: str) -> RateLimitAnswer:
        """How many requests a namespace may send."""
        return self.call(call_of("namespace_rate_limit", namespace=namespace))

    def namespace_quotas(self, namespace: str) -> QuotasView:
        """How much a namespace may store."""
        return self.call(call_of("namespace_quotas", namespace=namespace))

    def sso_settings(self) -> SsoView:
        """The settings of single sign-on."""
        return self.call(call_of("sso_settings"))

    def redaction(self, name: str) -> RedactionView:
        """Which values of its jobs' documents people do not see."""
        return self.call(call_of("redaction", name=name))

    def audit_logs(self, query: AuditLogsQuery | None = None) -> AuditLogsAnswer:
        """Changes, denied requests and audited reads, newest first."""
        return self.call(call_of("audit_logs", None, query))

    def login(self, body: LoginBody) -> LoggedIn:
        """Log a browser in: check a key or the admin password, and set the cookie `corvo_api_key`."""
        return self.call(call_of("login", body))

    def logout(self) -> LoggedOut:
        """Log a browser out: clear the cookie."""
        return self.call(call_of("logout"))
