"""The register of reads.

Those in `QUERIES` are answered by a shard's leader from its own state; the others (`READ_DB_ENDPOINTS`) by the
gateway from `read.db`, with the SQL in `gateway/answers` under the same name.
"""

import functools
import operator
from typing import Any

from corvo.ops.operation import Endpoint, Query
from corvo.queries import cluster, feed, job, members, queues, search, workers

QUERIES: tuple[type[Query], ...] = (
    job.GetJob,
    job.Await,
    cluster.GetStatus,
    cluster.GetIndex,
    feed.Pull,
    feed.Scan,
    *members.QUERIES,
)

ENDPOINTS: tuple[Endpoint, ...] = (
    *job.ENDPOINTS,
    *search.ENDPOINTS,
    *queues.ENDPOINTS,
    *workers.ENDPOINTS,
    *cluster.ENDPOINTS,
    *members.ENDPOINTS,
)

AnyQuery: Any = functools.reduce(operator.or_, QUERIES)
