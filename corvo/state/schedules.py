"""The cron schedules of a shard. All are in memory: they are few, and the leader asks for the next one every turn.

A schedule's record holds the user's definition (`JobTemplate`) and its progress. Like everything stored, these are
msgpack arrays: add a field last, with a default; never reorder.
"""

from enum import IntEnum

import msgspec

from corvo.model.job import Count, Priority, SpanMs
from corvo.model.sharding import unknown_schedule
from corvo.model.timestamps import LATEST_NS
from corvo.state import keys
from corvo.state.kv import KV


class CatchUp(IntEnum):
    """Which missed slots fire later. Stored by number: never renumber."""

    SKIP = 0
    LAST = 1
    ALL = 2


CATCH_UP_NAMES: tuple[str, ...] = tuple(policy.name.lower() for policy in CatchUp)


class JobTemplate(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """When a schedule fires, and the job that it makes."""

    queue: str
    cron: str
    timezone: str
    payload: bytes  # JSON, byte for byte as it was sent
    priority: Priority
    max_retries: Count  # attempts in all
    tags: bytes
    unique_key: str
    unique_period_ms: SpanMs
    catch_up: CatchUp
    catch_up_max: Count


class Schedule(msgspec.Struct, array_like=True, gc=False):
    id: str
    name: str
    terms: JobTemplate
    created_at: int
    updated_at: int
    settled_to: int  # slots up to here have fired or were skipped; it never goes back
    next_at: int  # when the leader checks it again: its next slot, or at once after a change
    version: int = 0  # raised by every change: what the leader computed before is void
    is_paused: bool = False
    last_slot: int = 0  # the newest slot that fired
    last_fired_at: int = 0
    fired: int = 0  # number of slots, ever


encode = msgspec.msgpack.Encoder().encode
decode_schedule = msgspec.msgpack.Decoder(Schedule).decode


class Schedules:
    def __init__(self) -> None:
        self._by_id: dict[str, Schedule] = {}
        self._ids: dict[str, str] = {}  # by name
        self._next_at: int | None = None  # None: compute it

    def recall(self, kv: KV) -> None:
        for _, value in kv.scan(keys.SCHEDULES, keys.prefix_end(keys.SCHEDULES)):
            self.keep(decode_schedule(value))

    def __len__(self) -> int:
        return len(self._by_id)

    def all(self) -> list[Schedule]:
        return list(self._by_id.values())

    def find(self, id_or_name: str) -> Schedule | None:
        return self._by_id.get(self._ids.get(id_or_name, id_or_name))

    def require(self, id_or_name: str) -> Schedule:
        schedule = self.find(id_or_name)
        if schedule is None:
            raise unknown_schedule(id_or_name)
        return schedule

    def keep(self, schedule: Schedule) -> None:
        self._by_id[schedule.id] = schedule
        self._ids[schedule.name] = schedule.id
        self._next_at = None

    def drop(self, schedule: Schedule) -> None:
        del self._by_id[schedule.id]
        del self._ids[schedule.name]
        self._next_at = None

    def next_at(self) -> int:
        """When the leader must check the first of them; `LATEST_NS` when there is none."""
        if self._next_at is None:
            waiting = (schedule.next_at for schedule in self._by_id.values() if not schedule.is_paused)
            self._next_at = min(waiting, default=LATEST_NS)
        return self._next_at

    def due(self, wall_ns: int) -> list[Schedule]:
        """Schedules that are due, the longest waiting first."""
        if self.next_at() > wall_ns:
            return []
        due = [one for one in self._by_id.values() if one.next_at <= wall_ns and not one.is_paused]
        return sorted(due, key=lambda schedule: (schedule.next_at, schedule.id))
