"""What is typed after `:`. Pure: it changes the session, or raises a sentence."""

from corvo.cli.screen.top.actions import NAMES, Impossible, question_by_name
from corvo.cli.screen.top.filters import BadFilter, word
from corvo.cli.screen.top.panes import PANES
from corvo.cli.screen.top.session import Place, Session

_PLACES = ("job", "queue", "worker", "filter", "sort", "interval", "help", "quit")
ALL = (*PANES, *_PLACES, *NAMES)


class BadCommand(ValueError):
    """A sentence about what was typed."""


def run_command(session: Session, text: str) -> None:
    name, _, rest = text.strip().partition(" ")
    rest = rest.strip()
    if not name:
        return
    full = _full_name(name)
    try:
        if full in PANES:
            session.go(full, rest)
            session.wants()  # a filter that cannot be read is told here
        elif full in NAMES:
            session.ask(question_by_name(full, _needed(full, rest)))
        else:
            _other(session, full, rest)
    except (BadFilter, Impossible) as error:
        if full in PANES:
            session.place.filter = ""
        raise BadCommand(str(error)) from None


def _other(session: Session, name: str, rest: str) -> None:
    if name == "quit":
        session.is_over = True
    elif name == "help":
        session.enter(Place("help"))
    elif name == "job":
        session.enter(Place("job", subject=_needed(name, rest)))
    elif name == "queue":
        session.enter(Place("jobs", word("queue", _needed(name, rest))))
    elif name == "worker":
        session.enter(Place("running", word("worker_id", _needed(name, rest))))
    elif name == "filter":
        session.set_filter(rest)
    elif name == "sort":
        session.set_sort(_needed(name, rest))
    elif name == "interval":
        session.set_interval(_seconds(_needed(name, rest)))


def _full_name(name: str) -> str:
    """A name may be shortened as far as it stays one: `:que` is both `queues` and `queue`, the first of them."""
    if name in ALL:
        return name
    if name in ("q", "q!"):  # as fingers know it
        return "quit"
    for one in ALL:
        if one.startswith(name):
            return one
    raise BadCommand(f"there is no command {name!r}; commands are {', '.join(ALL)}")


def _needed(name: str, rest: str) -> str:
    if not rest:
        raise BadCommand(f":{name} needs what it is for, such as :{name} {_EXAMPLES.get(name, 'ID')}")
    return rest


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise BadCommand(f"{text!r} is no number of seconds")
    return seconds


_EXAMPLES = {"queue": "mail", "pause": "mail", "resume": "mail", "worker": "w1", "sort": "dead", "interval": "5"}
