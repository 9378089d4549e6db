"""Snapshots as Raft sees them: streams that are asked for, finished or failed."""

from shards import raft
from shards.snapshots.messages import SnapshotMessage
from shards.snapshots.transfer import Complete, Sent, Snapshots


class StateStreams:
    def __init__(self, core: raft.Raft, snapshots: Snapshots | None) -> None:
        self._core = core
        self._snapshots = snapshots
        self._has_complete = False

    def turn(self, now_ns: int) -> None:
        if self._snapshots is not None:
            for event in self._snapshots.tick(now_ns):
                self._report(event, now_ns)

    def next_ns(self) -> int | None:
        return None if self._snapshots is None else self._snapshots.next_tick_ns()

    def receive(self, node: str, body: SnapshotMessage, now_ns: int) -> None:
        if self._snapshots is not None:
            self._report(self._snapshots.receive(node, body, now_ns), now_ns)

    def send(self, install: raft.InstallSnapshot, now_ns: int) -> None:
        if self._snapshots is not None:
            self._snapshots.send(install, now_ns)

    def discard_unwanted(self) -> None:
        """A complete state is installed in the turn that reported it, or not at all."""
        if self._has_complete and self._snapshots is not None:
            self._has_complete = False
            self._snapshots.discard()

    def _report(self, event: Sent | Complete | None, now_ns: int) -> None:
        if isinstance(event, Sent):
            self._core.report_snapshot(event.peer, event.ok)
        elif isinstance(event, Complete):
            self._has_complete = True
            self._core.step(event.install, now_ns)
