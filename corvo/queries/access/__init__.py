"""Questions about the records of access, which shard 0 keeps."""

from corvo.endpoint import Endpoint, Query
from corvo.queries.access import follow_access, keys, namespaces, principal, roles, sso

QUERIES: tuple[type[Query], ...] = (
    follow_access.FollowAccess,
    *keys.QUERIES,
    *roles.QUERIES,
    *namespaces.QUERIES,
    *sso.QUERIES,
)

ENDPOINTS: tuple[Endpoint, ...] = (
    *principal.ENDPOINTS,
    *keys.ENDPOINTS,
    *roles.ENDPOINTS,
    *namespaces.ENDPOINTS,
    *sso.ENDPOINTS,
)
