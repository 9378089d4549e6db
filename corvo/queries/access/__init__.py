"""Questions about the records of access, which shard 0 keeps."""

from corvo.endpoint import Query
from corvo.queries.access import follow_access

QUERIES: tuple[type[Query], ...] = (follow_access.FollowAccess,)
