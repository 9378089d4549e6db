"""What a shard's journal has told, for tests that ask about it."""

from corvo.model.events import Event, EventKind
from tests.support.machine import Machine


def events_of(machine: Machine) -> list[Event]:
    return [told.event for told in machine.tables.event_log.after(0)]


def kinds_of(machine: Machine, job_id: str | None = None) -> list[EventKind]:
    return [event.kind for event in events_of(machine) if job_id in (None, event.job_id)]
