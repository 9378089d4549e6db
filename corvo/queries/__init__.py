"""The register of queries and of the routes that only read.

A shard's leader answers those in `QUERIES` from its own state. The gateway answers the routes without a plan from
`read.db`, with the SQL in `gateway/search` under the same name.
"""

import functools
import operator
from typing import Any

from corvo.endpoint import Endpoint, Query
from corvo.queries import (
    access,
    arrivals,
    audit_logs,
    batches,
    batches_list,
    bulk,
    cluster,
    error_groups,
    events,
    feed,
    job,
    jobs,
    members,
    queue,
    queue_names,
    queues,
    rebuild,
    redaction,
    schedules,
    search,
    sessions,
    sight,
    state_lists,
    stored,
    throughput,
    unknown_jobs,
    why,
    worker,
    workers,
)

QUERIES: tuple[type[Query], ...] = (
    job.GetJob,
    job.Await,
    jobs.GetJobs,
    batches.GetBatch,
    arrivals.GetArrivals,
    unknown_jobs.FindUnknown,
    queue.GetQueue,
    queue_names.KnowsQueue,
    cluster.GetStatus,
    cluster.GetIndex,
    feed.Pull,
    feed.Scan,
    events.GetEvents,
    why.Why,
    audit_logs.ReadAudit,
    *members.QUERIES,
    *schedules.QUERIES,
    *bulk.QUERIES,
    *access.QUERIES,
    *sight.QUERIES,
    *redaction.QUERIES,
    stored.GetStored,
)

ENDPOINTS: tuple[Endpoint, ...] = (
    *state_lists.ENDPOINTS,
    *job.ENDPOINTS,
    *jobs.ENDPOINTS,
    *bulk.ENDPOINTS,
    *batches.ENDPOINTS,
    *batches_list.ENDPOINTS,
    *why.ENDPOINTS,
    *schedules.ENDPOINTS,
    *search.ENDPOINTS,
    *queues.ENDPOINTS,
    *queue.ENDPOINTS,
    *workers.ENDPOINTS,
    *worker.ENDPOINTS,
    *throughput.ENDPOINTS,
    *error_groups.ENDPOINTS,
    *cluster.ENDPOINTS,
    *members.ENDPOINTS,
    *rebuild.ENDPOINTS,
    *events.ENDPOINTS,
    *access.ENDPOINTS,
    *redaction.ENDPOINTS,
    *audit_logs.ENDPOINTS,
    *sessions.ENDPOINTS,
)

AnyQuery: Any = functools.reduce(operator.or_, QUERIES)
