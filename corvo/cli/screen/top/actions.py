"""What can be done with a row, and how it is asked and said. Pure; `perform` calls the client that it is given.

Keys of actions are upper case, and every action is asked for once more: what is under the cursor changes by itself.
"""

from collections.abc import Callable
from typing import NamedTuple

from corvo.cli.screen.top.grid import Row
from corvo.client.answers import BulkDone, BulkStarted
from corvo.client.bodies import BulkBody
from corvo.client.http import Client
from corvo.model.lifecycle import RULES, STATE_NAMES, Verb

MARKS_MAX = 500  # of one bulk action


class KeyAction(NamedTuple):
    key: str
    name: str
    kind: str  # of rows
    states: tuple[str, ...]  # of rows, in which the server would do it


def _states(verb: Verb) -> tuple[str, ...]:
    """The server's own table: a key is shown only where the server would do it."""
    return tuple(STATE_NAMES[state] for state in sorted(RULES[verb].sources))


ACTIONS = (
    KeyAction("P", "pause", "queue", ("active",)),
    KeyAction("P", "resume", "queue", ("paused", "draining", "drained")),
    KeyAction("R", "retry", "job", _states(Verb.RUN_AGAIN)),
    KeyAction("C", "cancel", "job", _states(Verb.CANCEL)),
    KeyAction("A", "approve", "job", _states(Verb.APPROVE)),
    KeyAction("X", "reject", "job", _states(Verb.REJECT)),
)
KEYS = frozenset(action.key for action in ACTIONS)
NAMES = tuple(action.name for action in ACTIONS)


class Question(NamedTuple):
    """An action on its targets, which are fixed when the key is pressed."""

    name: str
    kind: str
    targets: tuple[str, ...]

    @property
    def sentence(self) -> str:
        what = self.targets[0] if len(self.targets) == 1 else f"{len(self.targets)} jobs"
        return f"{self.name} {self.kind + ' ' if len(self.targets) == 1 else ''}{what}? y/n"


class Impossible(ValueError):
    """A sentence about why not."""


def possible(row: Row | None) -> list[KeyAction]:
    return [action for action in ACTIONS if row is not None and action.kind == row.kind and row.state in action.states]


def question_of(key: str, row: Row | None, marked: tuple[str, ...]) -> Question:
    """Marked jobs, if there are any, are acted on all together: the server refuses those that it must."""
    if marked and (named := [action for action in ACTIONS if action.key == key and action.kind == "job"]):
        return Question(named[0].name, "job", marked)
    if row is None:
        raise Impossible("there is nothing here to act on")
    for action in possible(row):
        if action.key == key:
            return Question(action.name, action.kind, (row.key,))
    names = " or ".join(action.name for action in ACTIONS if action.key == key)
    kinds = {action.kind for action in ACTIONS if action.key == key}
    if row.kind not in kinds:
        raise Impossible(f"{names} is for {kinds.pop()}s: this is a {row.kind}")
    raise Impossible(f"this {row.kind} is {row.state}: {names} does not apply")


def question_by_name(name: str, target: str) -> Question:
    """Of a command: `:cancel ID`. Whether it is possible, the server says."""
    for action in ACTIONS:
        if action.name == name:
            return Question(name, action.kind, (target,))
    raise Impossible(f"there is no action {name!r}")


def perform(client: Client, question: Question) -> str:
    """A sentence about what was done."""
    if len(question.targets) > 1:
        return _bulk(client, question)
    (target,) = question.targets
    calls: dict[str, Callable[[str], object]] = {
        "pause": client.pause_queue,
        "resume": client.resume_queue,
        "retry": client.retry,
        "cancel": client.cancel,
        "approve": client.approve,
        "reject": client.reject,
    }
    answer = calls[question.name](target)
    return f"{question.name} {question.kind} {target}: {getattr(answer, 'status', 'done')}"


def _bulk(client: Client, question: Question) -> str:
    body = BulkBody(action=question.name, job_ids=list(question.targets))  # type: ignore[arg-type]  # a name of ACTIONS
    answer = client.bulk(body)
    if isinstance(answer, BulkStarted):
        return f"{question.name}: {answer.estimated_total} jobs, in the background as {answer.bulk_operation_id}"
    assert isinstance(answer, BulkDone)
    refused = ", ".join(f"{count} {code}" for code, count in answer.error_codes.items())
    return f"{question.name}: {answer.affected} jobs changed" + (f", refused: {refused}" if refused else "")
