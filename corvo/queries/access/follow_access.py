"""FollowAccess: how a gateway keeps its copy of the records of access. Any replica of shard 0 answers, without its
leader."""

from typing import Any, ClassVar

from corvo.endpoint import Query
from corvo.model.access_records import AccessNews
from corvo.model.job import Count


class FollowAccess(Query, tag=1070):
    after: Count  # the version that the gateway has

    result: ClassVar[Any] = AccessNews
