"""A method for each endpoint, to await. Written by `python -m corvo.cli.derive_client`: do not edit."""

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


class AsyncMethods:
    async def call(self, call: HttpCall[A]) -> A:
        raise NotImplementedError

    async def enqueue(self, body: EnqueueBody) -> Enqueued:
        """Enqueue one job."""
        return await self.call(call_of("enqueue", body))

    async def enqueue_batch(self, body: EnqueueBatchBody) -> EnqueuedBatch:
        """Enqueue up to 1000 jobs, on any queues, with or without a batch."""
        return await self.call(call_of("enqueue_batch", body))

    async def fetch(self, body: FetchBody) -> FetchedJob | None:
        """Claim one job, waiting if there is none."""
        return await self.call(call_of("fetch", body))

    async def fetch_batch(self, body: FetchBatchBody) -> FetchedBatch:
        """Claim up to `count` jobs, waiting until there is at least one."""
        return await self.call(call_of("fetch_batch", body))

    async def ack_batch(self, body: AckBatchBody) -> AckedBatch:
        """Complete up to 512 jobs; each has its own result."""
        return await self.call(call_of("ack_batch", body))

    async def ack(self, job_id: str, body: AckBody | None = None) -> Acked:
        """Complete a job."""
        return await self.call(call_of("ack", body, job_id=job_id))

    async def fail_batch(self, body: FailBatchBody) -> FailedBatch:
        """Fail up to 512 jobs; each has its own result."""
        return await self.call(call_of("fail_batch", body))

    async def fail(self, job_id: str, body: FailBody | None = None) -> Failed:
        """Report that an attempt failed."""
        return await self.call(call_of("fail", body, job_id=job_id))

    async def heartbeat(self, body: HeartbeatBody) -> HeartbeatAnswer:
        """Renew leases, report progress, learn of cancellations."""
        return await self.call(call_of("heartbeat", body))

    async def cancel(self, job_id: str, body: CancelBody | None = None) -> Cancelled:
        """Cancel a job that has not ended; the worker of an active job gets time to stop."""
        return await self.call(call_of("cancel", body, job_id=job_id))

    async def retry(self, job_id: str) -> Done:
        """Run an ended job again, or a scheduled job at once, with all its attempts."""
        return await self.call(call_of("retry", job_id=job_id))

    async def requeue(self, job_id: str) -> Done:
        """Run a dead job once more; its attempts are not reset."""
        return await self.call(call_of("requeue", job_id=job_id))

    async def hold(self, job_id: str, body: HoldBody | None = None) -> Done:
        """Keep a job from running until it is approved or rejected."""
        return await self.call(call_of("hold", body, job_id=job_id))

    async def approve(self, job_id: str) -> Done:
        """Let a held job run."""
        return await self.call(call_of("approve", job_id=job_id))

    async def reject(self, job_id: str, body: RejectBody | None = None) -> Done:
        """End a held job without running it."""
        return await self.call(call_of("reject", body, job_id=job_id))

    async def move(self, job_id: str, body: MoveBody) -> Done:
        """Move a job that is not active to another queue; it keeps its id."""
        return await self.call(call_of("move", body, job_id=job_id))

    async def change_priority(self, job_id: str, body: PriorityBody) -> Done:
        """Change the priority of a waiting job."""
        return await self.call(call_of("change_priority", body, job_id=job_id))

    async def reschedule(self, job_id: str, body: RescheduleBody) -> Done:
        """Change the time at which a waiting job runs."""
        return await self.call(call_of("reschedule", body, job_id=job_id))

    async def replay(self, job_id: str, body: ReplayBody) -> Enqueued:
        """Enqueue a new job that starts at the checkpoint of this one."""
        return await self.call(call_of("replay", body, job_id=job_id))

    async def delete_job(self, job_id: str) -> Done:
        """Delete a job in any state, with its history."""
        return await self.call(call_of("delete_job", job_id=job_id))

    async def bulk(self, body: BulkBody) -> BulkDone | BulkStarted:
        """One action on many jobs on all shards: a list of ids, or all that match a filter."""
        return await self.call(call_of("bulk", body))

    async def cancel_bulk(self, bulk_id: str) -> BulkView:
        """Stop a bulk operation after its current slice; changes that it made stay."""
        return await self.call(call_of("cancel_bulk", bulk_id=bulk_id))

    async def create_batch(self, body: BatchBody | None = None) -> BatchMade:
        """Open a batch, to which jobs can be added until it is sealed."""
        return await self.call(call_of("create_batch", body))

    async def seal_batch(self, batch_id: str) -> Sealed:
        """Seal a batch: when all its jobs have ended, its callback jobs are created."""
        return await self.call(call_of("seal_batch", batch_id=batch_id))

    async def seal_batch_by_its_old_path(self, batch_id: str) -> Sealed:
        """The same under the path that published clients use."""
        return await self.call(call_of("seal_batch_by_its_old_path", batch_id=batch_id))

    async def create_schedule(self, body: CreateScheduleBody) -> ScheduleView:
        """Create a cron schedule; if it exists with the same fields, it is returned."""
        return await self.call(call_of("create_schedule", body))

    async def update_schedule(self, schedule_id: str, body: UpdateScheduleBody) -> ScheduleView:
        """Change a schedule, by its id or name; fields that are not given stay."""
        return await self.call(call_of("update_schedule", body, schedule_id=schedule_id))

    async def delete_schedule(self, schedule_id: str) -> DeletedSchedule:
        """Delete a schedule; its jobs stay."""
        return await self.call(call_of("delete_schedule", schedule_id=schedule_id))

    async def pause_schedule(self, schedule_id: str) -> ScheduleView:
        """Pause a schedule: no slot fires until it is resumed."""
        return await self.call(call_of("pause_schedule", schedule_id=schedule_id))

    async def resume_schedule(self, schedule_id: str) -> ScheduleView:
        """Resume a paused schedule: its slots fire again from now on."""
        return await self.call(call_of("resume_schedule", schedule_id=schedule_id))

    async def run_schedule(self, schedule_id: str) -> Enqueued:
        """Create the job of a schedule at once, in addition to its slots."""
        return await self.call(call_of("run_schedule", schedule_id=schedule_id))

    async def pause_queue(self, name: str) -> QueueChanged:
        """Stop claims from a queue; it is created if it does not exist."""
        return await self.call(call_of("pause_queue", name=name))

    async def resume_queue(self, name: str) -> QueueChanged:
        """Allow claims from a queue again, after a pause or a drain."""
        return await self.call(call_of("resume_queue", name=name))

    async def drain_queue(self, name: str) -> QueueDraining:
        """Stop claims from a queue, and report how many jobs are still active."""
        return await self.call(call_of("drain_queue", name=name))

    async def clear_queue(self, name: str) -> QueueCleared:
        """Delete the waiting jobs of a queue: pending, scheduled and retrying."""
        return await self.call(call_of("clear_queue", name=name))

    async def delete_queue(self, name: str, query: DeleteQueueQuery | None = None) -> QueueChanged:
        """Delete a queue and all its jobs."""
        return await self.call(call_of("delete_queue", None, query, name=name))

    async def set_concurrency(self, name: str, body: ConcurrencyBody) -> QueueChanged:
        """Limit how many jobs of a queue are active at a time."""
        return await self.call(call_of("set_concurrency", body, name=name))

    async def set_throttle(self, name: str, body: ThrottleBody) -> QueueChanged:
        """Limit the rate of claims from a queue."""
        return await self.call(call_of("set_throttle", body, name=name))

    async def remove_throttle(self, name: str) -> QueueChanged:
        """Remove the throttle of a queue."""
        return await self.call(call_of("remove_throttle", name=name))

    async def set_retention(self, name: str, body: RetentionBody) -> QueueChanged:
        """Set how long jobs of a queue are kept after their end."""
        return await self.call(call_of("set_retention", body, name=name))

    async def set_redaction(self, name: str, body: RedactionBody) -> QueueChanged:
        """Set which values of its jobs' documents people do not see; replaces the paths before."""
        return await self.call(call_of("set_redaction", body, name=name))

    async def create_key(self, body: CreateKeyBody) -> KeyCreated:
        """Create an API key; the answer shows it once."""
        return await self.call(call_of("create_key", body))

    async def update_key(self, key_hash: str, body: UpdateKeyBody) -> KeyView:
        """Enable, disable or rename an API key, change its role, scope or expiry; what is not given stays."""
        return await self.call(call_of("update_key", body, key_hash=key_hash))

    async def rotate_key(self, key_hash: str, body: RotateKeyBody | None = None) -> KeyCreated:
        """Replace an API key; the old one still works for a while, and the answer shows the new one once."""
        return await self.call(call_of("rotate_key", body, key_hash=key_hash))

    async def delete_key(self, body: DeleteKeyBody) -> AccessChanged:
        """Delete an API key; it is refused from now on."""
        return await self.call(call_of("delete_key", body))

    async def revoke_key(self, key_hash: str) -> AccessChanged:
        """The same, for clients that cannot send a body with DELETE."""
        return await self.call(call_of("revoke_key", key_hash=key_hash))

    async def bind_role(self, key_hash: str, body: BindRoleBody) -> AccessChanged:
        """Give an API key a role, in addition to those that it has."""
        return await self.call(call_of("bind_role", body, key_hash=key_hash))

    async def unbind_role(self, key_hash: str, role: str) -> AccessChanged:
        """Take a role from an API key."""
        return await self.call(call_of("unbind_role", key_hash=key_hash, role=role))

    async def put_role(self, body: PutRoleBody) -> AccessChanged:
        """Create a custom role, or change its permissions."""
        return await self.call(call_of("put_role", body))

    async def delete_role(self, role: str) -> AccessChanged:
        """Delete a custom role, and take it from all keys."""
        return await self.call(call_of("delete_role", role=role))

    async def create_namespace(self, body: CreateNamespaceBody) -> NamespaceMade:
        """Create a namespace: a tenant with queues, jobs and keys of its own."""
        return await self.call(call_of("create_namespace", body))

    async def delete_namespace(self, namespace: str) -> AccessChanged:
        """Delete a namespace that has no keys."""
        return await self.call(call_of("delete_namespace", namespace=namespace))

    async def set_namespace_rate_limit(self, namespace: str, body: RateLimitBody) -> AccessChanged:
        """Set how many requests a namespace may send."""
        return await self.call(call_of("set_namespace_rate_limit", body, namespace=namespace))

    async def set_namespace_quotas(self, namespace: str, body: QuotasBody) -> AccessChanged:
        """Set how much a namespace may store; what is not given has no limit."""
        return await self.call(call_of("set_namespace_quotas", body, namespace=namespace))

    async def set_sso_settings(self, body: SsoBody) -> AccessChanged:
        """Change the settings of single sign-on."""
        return await self.call(call_of("set_sso_settings", body))

    async def dead(self, query: StateListQuery | None = None) -> SearchAnswer:
        """Jobs that have no attempts left."""
        return await self.call(call_of("dead", None, query))

    async def held(self, query: StateListQuery | None = None) -> SearchAnswer:
        """Jobs that wait for approval."""
        return await self.call(call_of("held", None, query))

    async def get_job(self, job_id: str, query: JobQuery | None = None) -> JobView:
        """One job with the history of its failures."""
        return await self.call(call_of("get_job", None, query, job_id=job_id))

    async def bulk_get(self, body: BulkGetBody) -> JobsView:
        """Many jobs by their ids, in that order; unknown ids are left out."""
        return await self.call(call_of("bulk_get", body))

    async def bulks(self, query: BulksQuery | None = None) -> list[BulkView]:
        """Bulk operations, newest first."""
        return await self.call(call_of("bulks", None, query))

    async def get_bulk(self, bulk_id: str) -> BulkView:
        """One bulk operation: its progress and its errors."""
        return await self.call(call_of("get_bulk", bulk_id=bulk_id))

    async def get_batch(self, batch_id: str) -> BatchView:
        """One batch with the outcomes of its jobs."""
        return await self.call(call_of("get_batch", batch_id=batch_id))

    async def batches(self, query: BatchesQuery | None = None) -> BatchesAnswer:
        """The batches of all shards, newest first."""
        return await self.call(call_of("batches", None, query))

    async def why(self, job_id: str) -> WhyView:
        """Why a job is not running."""
        return await self.call(call_of("why", job_id=job_id))

    async def schedules(self) -> list[ScheduleView]:
        """All cron schedules by name."""
        return await self.call(call_of("schedules"))

    async def get_schedule(self, schedule_id: str) -> ScheduleView:
        """One schedule, by its id or name, with its next slots."""
        return await self.call(call_of("get_schedule", schedule_id=schedule_id))

    async def search(self, body: SearchBody | None = None) -> SearchAnswer:
        """Search the jobs of all shards."""
        return await self.call(call_of("search", body))

    async def fulltext(self, query: FulltextQuery) -> FulltextAnswer:
        """Jobs whose payload, tags, result or errors contain all of these words."""
        return await self.call(call_of("fulltext", None, query))

    async def queues(self, query: QueuesQuery | None = None) -> list[QueueView]:
        """All queues with their counts and rates."""
        return await self.call(call_of("queues", None, query))

    async def get_queue(self, name: str) -> QueueDetail:
        """One queue with its counts, its limits and its remaining jobs."""
        return await self.call(call_of("get_queue", name=name))

    async def workers(self) -> list[WorkerView]:
        """Workers, newest first."""
        return await self.call(call_of("workers"))

    async def get_worker(self, worker_id: str) -> WorkerDetail:
        """One worker with its active jobs."""
        return await self.call(call_of("get_worker", worker_id=worker_id))

    async def throughput(self, query: ThroughputQuery | None = None) -> list[ThroughputPoint]:
        """Counts by the minute over all queues; kept for a day."""
        return await self.call(call_of("throughput", None, query))

    async def queue_throughput(self, name: str, query: ThroughputQuery | None = None) -> list[ThroughputPoint]:
        """Counts of a queue by the minute; kept for a day."""
        return await self.call(call_of("queue_throughput", None, query, name=name))

    async def error_groups(self, query: ErrorGroupsQuery | None = None) -> ErrorGroupsAnswer:
        """Failures grouped by their message, the most frequent first."""
        return await self.call(call_of("error_groups", None, query))

    async def cluster_status(self) -> ClusterStatus:
        """Status and figures of every shard and all its replicas."""
        return await self.call(call_of("cluster_status"))

    async def info(self) -> ServerInfo:
        """Versions of the server and the API."""
        return await self.call(call_of("info"))

    async def cluster_join(self, body: JoinBody) -> MembersView:
        """Add a node to every shard's group: it receives the log, and votes once it has caught up."""
        return await self.call(call_of("cluster_join", body))

    async def cluster_remove(self, body: RemoveBody) -> MembersView:
        """Remove a node from every shard's group."""
        return await self.call(call_of("cluster_remove", body))

    async def cluster_transfer(self, body: TransferBody) -> MembersView:
        """Transfer the leadership of one shard, or of all, to a node."""
        return await self.call(call_of("cluster_transfer", body))

    async def rebuild_read_db(self, query: RebuildQuery | None = None) -> RebuildView:
        """Rebuild this node's read database beside the one in use, then replace it."""
        return await self.call(call_of("rebuild_read_db", None, query))

    async def rebuild_sqlite(self, query: RebuildQuery | None = None) -> RebuildView:
        """The same, under the path of older clients."""
        return await self.call(call_of("rebuild_sqlite", None, query))

    async def cluster_events(self, query: EventsPageQuery | None = None) -> EventsPage:
        """One page of the events that are kept."""
        return await self.call(call_of("cluster_events", None, query))

    async def auth_status(self) -> AuthStatus:
        """How this server authenticates."""
        return await self.call(call_of("auth_status"))

    async def whoami(self) -> PrincipalView:
        """The principal of this request: its roles, permissions, namespace and scope."""
        return await self.call(call_of("whoami"))

    async def api_keys(self, query: KeysQuery | None = None) -> list[KeyView]:
        """API keys, oldest first: a cluster administrator sees all, others those of their namespace."""
        return await self.call(call_of("api_keys", None, query))

    async def key_roles(self, key_hash: str) -> KeyRoles:
        """Custom roles that are bound to an API key."""
        return await self.call(call_of("key_roles", key_hash=key_hash))

    async def roles(self) -> list[RoleView]:
        """Roles and their permissions, the built-in ones first."""
        return await self.call(call_of("roles"))

    async def namespaces(self) -> list[NamespaceView]:
        """Namespaces by name; a tenant sees its own."""
        return await self.call(call_of("namespaces"))

    async def namespace_rate_limit(self, namespace: str) -> RateLimitAnswer:
        """How many requests a namespace may send."""
        return await self.call(call_of("namespace_rate_limit", namespace=namespace))

    async def namespace_quotas(self, namespace: str) -> QuotasView:
        """How much a namespace may store."""
        return await self.call(call_of("namespace_quotas", namespace=namespace))

    async def sso_settings(self) -> SsoView:
        """The settings of single sign-on."""
        return await self.call(call_of("sso_settings"))

    async def redaction(self, name: str) -> RedactionView:
        """Which values of its jobs' documents people do not see."""
        return await self.call(call_of("redaction", name=name))

    async def audit_logs(self, query: AuditLogsQuery | None = None) -> AuditLogsAnswer:
        """Changes, denied requests and audited reads, newest first."""
        return await self.call(call_of("audit_logs", None, query))

    async def login(self, body: LoginBody) -> LoggedIn:
        """Log a browser in: check a key or the admin password, and set the cookie `corvo_api_key`."""
        return await self.call(call_of("login", body))

    async def logout(self) -> LoggedOut:
        """Log a browser out: clear the cookie."""
        return await self.call(call_of("logout"))
