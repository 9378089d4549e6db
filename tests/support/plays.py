"""A tiny language of plays: what is asked of one shard, and the transcript of what its jobs do.

    enqueue queue=mail id=j1 [priority=high] [in=5s] [attempts=3] [backoff=linear] [base=1s] [cap=10m]
    fetch queue=mail,video worker=w1 [lease=10s] [count=2]
    ack j1 [worker=w1]        fail j1 [worker=w1] [error=boom]      heartbeat j1 [worker=w1]
    cancel j1
    tick 11s                  time passes; what falls due happens at its moment, as the leader would see to it
    again                     the last request once more, as a gateway sends it that got no answer
    crash                     the process dies and comes back with what was flushed and the log
    show j1 · counts mail     a look that changes nothing

A worker speaks with the token of its newest claim of the job; without `worker=` no token is sent. Commands stand above
`----`, the transcript below, a blank line between the scenes. A job that is born pending is not worth a line.
"""

from collections.abc import Sequence

from corvo.endpoint import Operation
from corvo.model.errors import Refused
from corvo.model.job import PRIORITY_NAMES, Job, Priority
from corvo.model.lifecycle import STATE_NAMES, State
from corvo.model.retry import BACKOFF_NAMES, Backoff
from corvo.model.timestamps import parse_duration
from corvo.ops.jobs.cancel import Cancel
from corvo.ops.jobs.fail import Failure
from corvo.ops.jobs.fetch import Claimed, Fetch
from corvo.ops.jobs.heartbeat import Pulse
from tests.support.builders import MS, NOW, ack, cancel, enqueue, fail, fetch, heartbeat, new_job, promote, reclaim
from tests.support.machine import Machine

RULE = "----"


class Stage:
    def __init__(self) -> None:
        self.machine = Machine()
        self.names: dict[str, str] = {}  # job id → its name in the play
        self.tokens: dict[tuple[str, str], int] = {}  # worker, name → token of its newest claim
        self.asks = 0
        self.last: tuple[Operation, str] | None = None
        self.lines: list[str] = []

    def play(self, command: str) -> None:
        verb, *words = command.split()
        names = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        getattr(self, f"_{verb}")(*names, **options)
        self.machine.check()

    # Commands

    def _enqueue(self, **options: str) -> None:
        new = new_job(
            len(self.names) + 1,
            queue=options.pop("queue"),
            priority=Priority(PRIORITY_NAMES.index(options.pop("priority", "normal"))),
            max_retries=int(options.pop("attempts", "3")),
            backoff=Backoff(BACKOFF_NAMES.index(options.pop("backoff", "exponential"))),
            base_delay_ms=parse_duration(options.pop("base", "5s")),
            max_delay_ms=parse_duration(options.pop("cap", "10m")),
            scheduled_at=self.machine.now + parse_duration(options.pop("in")) * MS if "in" in options else 0,
        )
        self.names[new.id] = options.pop("id")
        assert not options, options
        self._ask(enqueue(new))

    def _fetch(self, queue: str, worker: str, lease: str = "60s", count: str = "1") -> None:
        self._ask(
            fetch(
                *queue.split(","), worker=worker, claim=self._ask_id(), count=int(count), lease_ms=parse_duration(lease)
            ),
            worker,
        )

    def _ack(self, name: str, worker: str = "") -> None:
        self._ask(ack(self._id(name), ask=self._ask_id(), token=self._token(worker, name)))

    def _fail(self, name: str, worker: str = "", error: str = "boom") -> None:
        self._ask(fail(self._id(name), ask=self._ask_id(), token=self._token(worker, name), error=error))

    def _heartbeat(self, name: str, worker: str = "") -> None:
        self._ask(heartbeat(self._id(name), token=self._token(worker, name)))

    def _cancel(self, name: str) -> None:
        self._ask(cancel(self._id(name), ask=self._ask_id()))

    def _again(self) -> None:
        assert self.last is not None, "there is nothing to repeat"
        operation, worker = self.last
        if isinstance(operation, Fetch):
            operation.is_repeated = True
        self._ask(operation, worker)

    def _crash(self) -> None:
        before = self.machine.state()
        self.machine.restart()
        assert self.machine.state() == before, "a crash changed the state"

    def _flush(self) -> None:
        self.machine.flush()

    def _tick(self, span: str) -> None:
        """The leader's upkeep: sleep until something is due, settle it, sleep again."""
        machine, until = self.machine, self.machine.now + parse_duration(span) * MS
        while True:
            lease_end = machine.tables.leases.next_end(machine.now)
            due_at = machine.tables.due.look_ahead(machine.now)
            wake = due_at if lease_end is None else min(due_at, lease_end)
            if wake <= machine.now:
                before = self._states()
                machine.apply(promote(), reclaim())
                self._tell_moves(before, by_clock=True)
            elif wake <= until:
                machine.now = wake
            else:
                break
        machine.now = until

    def _show(self, name: str) -> None:
        job = self.machine.job(self._id(name))
        self.lines.append(f"{name} {STATE_NAMES[job.state]}   attempt {job.attempt} of {job.max_retries}")
        for error in self.machine.tables.errors(job.id):
            self.lines.append(f"  attempt {error.attempt}: {error.error}")

    def _counts(self, queue: str) -> None:
        counts = self.machine.queue(queue).counts
        shown = [f"{STATE_NAMES[state]} {counts[state]}" for state in State if counts[state]]
        self.lines.append(f"{queue}: {', '.join(shown) or 'empty'}")

    # The transcript

    def _ask(self, operation: Operation, worker: str = "") -> None:
        self.last = (operation, worker)
        before = self._states()
        result = self.machine.one(operation)
        claims = [item.job_id for item in result if isinstance(item, Claimed)] if isinstance(result, list) else []
        moved = self._tell_moves(before, worker=worker, order=claims)
        for item in result if isinstance(result, list) else [result]:
            self._tell(item, worker, moved)
        if isinstance(operation, Fetch) and not result:
            self.lines.append(f"{worker} gets nothing")
        if isinstance(operation, Cancel) and isinstance(result, bool):
            self.lines.append("the worker has yet to be told" if result else "nobody need be told")

    def _tell(self, item: object, worker: str, moved: bool) -> None:
        match item:
            case Refused():
                self.lines.append(f"refused {item.code.lower()}")
            case Claimed():
                name = self.names[item.job_id]
                self.tokens[worker, name] = item.lease_token
                if not moved:
                    self.lines.append(f"{worker} still holds {name}   attempt {item.attempt}")
            case Failure() if not moved:
                self.lines.append(f"{STATE_NAMES[item.state]}, {item.attempts_remaining} attempts left, as told before")
            case None if not moved:
                self.lines.append("done, as told before")
            case Pulse():
                self.lines.append(item.name.lower())

    def _states(self) -> dict[str, State]:
        return {job.id: job.state for job in self.machine.jobs()}

    def _tell_moves(
        self, before: dict[str, State], worker: str = "", order: Sequence[str] = (), by_clock: bool = False
    ) -> bool:
        jobs = [job for job in self.machine.jobs() if before.get(job.id) != job.state]
        jobs.sort(key=lambda job: order.index(job.id) if job.id in order else job.position)
        moves = [self._move(job, before.get(job.id), worker, by_clock) for job in jobs]
        self.lines += [move for move in moves if move]
        return bool(jobs)

    def _move(self, job: Job, source: State | None, worker: str, by_clock: bool) -> str:
        name = self.names[job.id]
        if source is None:
            return f"{name} scheduled for {_span(job.due_at)}" if job.state == State.SCHEDULED else ""
        line = f"{name} {STATE_NAMES[source]} → {STATE_NAMES[job.state]}"
        if job.state == State.ACTIVE:
            return f"{line}   {worker}, attempt {job.attempt}"
        if job.state == State.RETRYING:
            return f"{line}   until {_span(job.due_at)}"
        if by_clock:
            line += f"   at {_span(self.machine.now)}"
            return f"{line}, lease of {job.worker_id} over" if source == State.ACTIVE else line
        return line

    def _ask_id(self) -> int:
        self.asks += 1
        return self.asks

    def _token(self, worker: str, name: str) -> int:
        return self.tokens[worker, name] if worker else 0

    def _id(self, name: str) -> str:
        return next((job_id for job_id, known in self.names.items() if known == name), name)


def _span(moment: int) -> str:
    """A moment as the time since the curtain rose."""
    ms, rest = divmod(moment - NOW, MS)
    assert rest == 0, "plays are exact to the millisecond"
    return f"{ms // 1000}s" if ms % 1000 == 0 else f"{ms / 1000:.3f}s"


def perform(text: str) -> str:
    """The play with its transcripts written anew."""
    stage, scenes = Stage(), []
    for scene in text.strip("\n").split("\n\n"):
        commands = scene.split(f"\n{RULE}")[0].splitlines()
        stage.lines = []
        for command in commands:
            if not command.startswith("#"):
                stage.play(command)
        is_comment = all(command.startswith("#") for command in commands)
        scenes.append("\n".join(commands if is_comment else [*commands, RULE, *stage.lines]))
    return "\n\n".join(scenes) + "\n"
