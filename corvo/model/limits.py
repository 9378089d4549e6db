"""Every bound that is part of the contract, with its reason. Bounds that users may change are settings
(`settings.py`)."""

import re

# Names that become parts of keys. The pattern excludes the separators of `state/keys.py` (`|` and NUL), so that no name
# can forge a key, and control characters, so that no name can forge a log line or a header.
QUEUE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}")
# Inside the server, a name begins and an id ends with its namespace (`namespaces.py`); `default` adds nothing.
NAMESPACE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
QUALIFIED_NAME = re.compile(rf"(?:{NAMESPACE.pattern}\|)?{QUEUE_NAME.pattern}")
JOB_ID = re.compile(rf"s[0-9]{{2}}_job_[0-9a-z]{{26}}(_{NAMESPACE.pattern})?")
BATCH_ID = re.compile(rf"s[0-9]{{2}}_batch_[0-9a-z]{{26}}(_{NAMESPACE.pattern})?")
SCHEDULE_ID = re.compile(rf"s[0-9]{{2}}_sched_[0-9a-z]{{26}}(_{NAMESPACE.pattern})?")
BULK_ID = re.compile(rf"bulk_[0-9a-f]{{26}}(_{NAMESPACE.pattern})?")
SCHEDULE_NAME = re.compile(
    rf"(?:{NAMESPACE.pattern}\|)?(?!s[0-9]{{2}}_sched_)[A-Za-z0-9][A-Za-z0-9._:-]{{0,199}}"
)  # no name looks like an id

NODES_MAX = 15  # of one cluster
GATEWAYS_MAX = 64  # of one node: they share its cores with the shards, and each serves thousands of connections
SHARDS_MAX = 64  # two digits in a job id, one process each: more is a mistake
QUEUES_MEASURED_MAX = 1000  # with a label in /metrics: about fifteen series each
QUEUES_PER_FETCH_MAX = 100  # each is checked in turn; a longer list is a mistake
JOBS_PER_REQUEST_MAX = 1000  # one batch is one operation in the log: it must stay small beside an election time-out
CLAIMED_BYTES_MAX = 8 * 1024 * 1024  # payloads in one fetch; the next fetch gets the rest
FETCH_COUNT_MAX = 512  # the original's bound, which its clients know
HEARTBEAT_JOBS_MAX = 1000

PAYLOAD_BYTES_DEFAULT = 256 * 1024
BODY_BYTES_MAX = 16 * 1024 * 1024  # read at most this much of any request, whatever its route
JSON_DEPTH_MAX = 64  # deep enough for real documents, too shallow to exhaust a recursive reader
SMALL_JSON_BYTES_MAX = 64 * 1024  # tags, progress, checkpoint: rewritten with the job at each change
ERROR_CHARS_MAX = 8 * 1024
BACKTRACE_CHARS_MAX = 64 * 1024
TEXT_CHARS_MAX = 256  # host names, reasons, tag keys
JQ_BYTES_MAX = 4 * 1024  # of one payload_jq expression
JQ_TOKENS_MAX = 500  # of one payload_jq expression: far below what SQLite accepts in one statement
JQ_DEPTH_MAX = 32  # of its parentheses and negations
JQ_LIST_MAX = 100  # values after an `in`

ATTEMPTS_MAX = 1000
DELAY_MS_MAX = 366 * 24 * 3600 * 1000  # a year: any retry or delay beyond is a typing mistake
SCHEDULE_AHEAD_NS_MAX = 5 * 366 * 24 * 3600 * 10**9  # how far ahead the next slot of a cron expression is looked for
LEASE_MS_DEFAULT = 60_000
LEASE_MS_MIN = 1_000
LEASE_MS_MAX = 12 * 3600 * 1000
POLL_MS_DEFAULT = 30_000
POLL_MS_MAX = 60_000

PROGRESS_TOLD_BYTES_MAX = 1024  # in an event; longer progress is in the job only, not in the event log
EVENTS_KEPT = 100_000  # of each shard: how far a listener that was away can catch up
RETENTION_MS_DEFAULT = 7 * 24 * 3600 * 1000  # of jobs that have ended
WORKER_TIMEOUT_MS_DEFAULT = 15 * 60 * 1000  # a worker that is silent for longer is removed
WORKER_TIMEOUT_MS_MIN = 10_000  # twice the time in which a busy worker's record is not rewritten
UNIQUE_PERIOD_MS_DEFAULT = 3_600_000  # the original's
BATCH_QUEUES_KEPT = 100  # names of queues in a batch's record, for keys with a scope; it may have jobs in more
BATCH_ASKS_KEPT_MS = 600_000  # far longer than a gateway repeats a request
CANCEL_GRACE_MS_DEFAULT = 30_000
ERRANDS_PER_DELIVERY = 500
DELIVERY_BYTES_MAX = 1024 * 1024
STEPS_PER_CHAIN_MAX = 100
CHAIN_BYTES_MAX = 256 * 1024  # payloads of all its steps: every job of a chain carries them, and is rewritten with them
DEPENDENCIES_MAX = 100  # of one job
SCHEDULES_MAX = 10_000  # of each shard: they are kept in memory
CATCH_UP_MAX = 1000  # missed slots of one schedule that fire later
RATE_MAX = 100_000  # claims in a window: the time of each is kept
WINDOW_MS_MIN = 1000
WINDOW_MS_MAX = 24 * 3600 * 1000
CONCURRENCY_MAX = 1_000_000  # active jobs of a queue; a higher limit would limit nothing
RETENTION_MS_MIN = 1000
WEIGHT_MAX = 1000  # of a queue in one fetch
POOL_SIZE_MAX = 1_000_000  # jobs that one worker says it can run at a time
BULK_AT_ONCE_MAX = 10_000  # jobs that a bulk action changes within its request, or names; more runs in the background
BULK_SLICE = 500  # jobs of a bulk action at a time: workers are answered between two slices
BULK_ERRORS_KEPT = 100  # refused jobs that a bulk action names; all of them are counted
BULKS_OPEN_MAX = 100  # bulk operations that wait or run
BULKS_OPEN_OF_TENANT_MAX = 20  # the same of one namespace other than `default`: tenants share the rest
BULKS_ENDED_KEPT = 1000  # the newest, for seven days
BULK_LEASE_MS = 30_000  # of the gateway that works on an operation; longer than a slice may take
BULK_MEMO_MS = 24 * 3600 * 1000  # how long a shard remembers what it did in the newest slice of an operation
BULK_MEMO_AT_ONCE_MS = 600_000  # the same for a request: far longer than a gateway repeats one
AUDIT_TEXT_CHARS_MAX = 1024  # of a path or a query in the audit log
AUDIT_DETAILS_BYTES_MAX = 8 * 1024  # of a body's listed fields, or of settings, in one record of the audit log
AUDIT_RECORD_BYTES_MAX = 32 * 1024  # of one record of the audit log
AUDIT_RETENTION_MS_DEFAULT = 365 * 24 * 3600 * 1000  # of records of the audit log
AUDIT_RETENTION_MS_MIN = 3600 * 1000  # far longer than a gateway repeats a request
AUDIT_RETENTION_MS_MAX = 3660 * 24 * 3600 * 1000
AUDIT_RECORDS_DEFAULT = 1_000_000  # kept in the audit log: about 1 GB in each replica
AUDIT_RECORDS_MIN = 10_000  # more than the log remembers for repeated requests
AUDIT_ASKS_REMEMBERED = 4096  # of the newest records: a repeated request does not add a second one
AUDIT_REMOVED_AT_ONCE = 200  # records of the audit log: one entry stays short
BULK_GET_BYTES_MAX = 32 * 1024 * 1024  # payloads in one answer with many jobs
UPKEEP_JOBS_PER_ENTRY = 500  # timers due at the same time are handled in slices, so that one entry stays short
ERRORS_KEPT_PER_JOB = 25  # the newest; a job with a thousand attempts must not store a thousand backtraces

REDACTED_QUEUES_MAX = 1_000  # queues with paths of redaction: every gateway has a copy of all
REDACTION_PATHS_MAX = 64  # of one queue
REDACTION_PATH_CHARS_MAX = 512
SESSIONS_PER_PERSON_MAX = 10  # a sign-on beyond these ends the oldest
KEYS_MAX = 10_000  # API keys of the cluster: every gateway has a copy of all
KEYS_PER_NAMESPACE_MAX = 1_000  # of a namespace other than `default`: one tenant must not use them up
EXPIRED_KEY_KEPT_MS = 30 * 24 * 3600 * 1000  # an expired key is listed this long; then a new one may take its place
ROLES_MAX = 1_000  # custom roles
ROLES_PER_KEY_MAX = 32
ROLE_BYTES_MAX = 4 * 1024  # its permissions as JSON
NAMESPACES_MAX = 10_000
SCOPE_CHARS_MAX = 1_024  # of a key's queue scope
KEY_OVERLAP_MS_MAX = 90 * 24 * 3600 * 1000  # how long a key that was rotated out may still work
KEY_USES_MAX = 1_000  # keys in one report of their use
KEY_USE_MS = 60_000  # the time of a key's last use is this coarse
GROUP_MAPPINGS_MAX = 1_000  # groups of the sign-on settings

CALLS_PER_MESSAGE_MAX = 4096
MESSAGE_BYTES_MAX = 64 * 1024 * 1024  # ZeroMQ refuses a larger frame before it allocates anything
ENTRY_BYTES_MAX = 8 * 1024 * 1024  # one Raft entry; more waits for the next turn
