"""The targets by name, with inputs to begin from. An input that is no failure returns; a failure raises."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.fuzz import conditions, credentials, frames, heads, messages, websockets

INPUTS = Path(__file__).parent / "inputs"


class Target(NamedTuple):
    play: Callable[[bytes], None]
    beginnings: Callable[[], list[bytes]]


TARGETS: dict[str, Target] = {
    "frame": Target(frames.play, frames.beginnings),
    "messages": Target(messages.play, messages.beginnings),
    "jq": Target(conditions.play, conditions.beginnings),
    "http": Target(heads.play, heads.beginnings),
    "websocket": Target(websockets.play, websockets.beginnings),
    "token": Target(credentials.play, credentials.beginnings),
}


def kept(name: str) -> list[Path]:
    """Inputs that once broke a promise."""
    return sorted((INPUTS / name).glob("*"))
