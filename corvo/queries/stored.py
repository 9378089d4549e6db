"""What namespaces have on one shard. Gateways ask once a second, for those with quotas."""

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from corvo.endpoint import Read
from corvo.model.limits import NAMESPACES_MAX
from corvo.model.quotas import StoredAmounts
from corvo.rules.quotas import stored
from corvo.state.tables import Tables


class GetStored(Read, tag=1082):
    namespaces: Annotated[list[str], Meta(max_length=NAMESPACES_MAX)]

    result: ClassVar[Any] = list[StoredAmounts]

    def read(self, tables: Tables) -> list[StoredAmounts]:
        return [stored(tables, namespace) for namespace in self.namespaces]
