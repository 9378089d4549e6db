"""What a machine has told of its queues."""

from corvo.model.events import Event
from corvo.state import keys
from corvo.state.event_log import decode_page
from tests.support.machine import Machine


def told(machine: Machine) -> list[Event]:
    """Events of queues, oldest first."""
    pages = machine.tables.overlay.scan(keys.EVENTS, keys.prefix_end(keys.EVENTS))
    return [event for _, page in pages for event in decode_page(page).events if not event.job_id]
