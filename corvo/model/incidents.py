"""What happened to the processes of a node since it started: the supervisor writes it, the gateways show it."""

import msgspec

INCIDENTS_MAX = 10


class Incident(msgspec.Struct, frozen=True):
    """A process that ended although nobody asked it to."""

    at: str
    process: str
    reason: str


class NodeRecord(msgspec.Struct):
    """`restarts` has every process, those that were never restarted too; `incidents` has the last few, oldest first."""

    restarts: dict[str, int] = {}
    incidents: list[Incident] = []

    def restart(self, process: str) -> None:
        self.restarts[process] = self.restarts.get(process, 0) + 1

    def note(self, incident: Incident) -> None:
        self.incidents = [*self.incidents, incident][-INCIDENTS_MAX:]
