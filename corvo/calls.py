"""Calls to one shard, from the question to its answer: ids, deadlines, what is sent together, what is sent again. Pure.

The owner of a `CallTable` has the socket and the clock. It adds calls, hands in replies and changes of the connection,
and gives `send` a function that sends one message.

A call that was sent when its shard died is sent again to the next shard process: every operation is safe to repeat,
because its ids were stamped before it was first sent. So is a call whose shard has no leader at the moment, for as long
as an election should take. A call that is not answered by its deadline is refused; whether it happened is then unknown.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from corvo.endpoint import Operation, Query
from corvo.model.drain_rate import DrainRate
from corvo.model.errors import Refusal
from corvo.model.limits import CALLS_PER_MESSAGE_MAX
from corvo.ops.jobs.fetch import Fetch
from corvo.queries.job import Await
from corvo.wire import Call, Reply, decode_result, encode, pieces

CALLS_OPEN_MAX = 16_384
BYTES_OPEN_MAX = 64 * 1024 * 1024  # a shard that stands still must not make its callers grow
BYTES_PER_MESSAGE = 8 * 1024 * 1024
# A shard without a leader: asked again this often, until a call is this old and an election had this long.
LEADERLESS_RETRY_S = 0.05
LEADERLESS_ASKED_S = 1.6
LEADERLESS_S = 0.5
LEADERLESS_WAIT_S = 1.6  # of a call that had waited, as it was meant to: its age says nothing
LEADERLESS = frozenset({"NOT_LEADER", "OUTCOME_UNKNOWN"})

_OPEN: Any = object()


class OpenCall(msgspec.Struct, eq=False):
    """A call until it is answered, then its outcome: a result or a `Refusal`. All times are monotonic seconds."""

    ask: Operation | Query
    asked_at: float
    deadline: float
    raw: bytes = b""
    call_id: int = 0
    shard: int = 0
    is_sent: bool = False
    refused_at: float = 0.0  # when the shard last said that it has no leader
    leaderless_since: float = 0.0
    is_uncertain: bool = False  # a leader may have acted on it before it was lost
    outcome: Any = _OPEN

    # A caller that wants to be woken overrides these two.

    def is_over(self) -> bool:
        """Answered, or given up by its caller."""
        return self.outcome is not _OPEN

    def end(self, outcome: Any) -> None:
        self.outcome = outcome


class CallTable:
    def __init__(self, shard: int, waits_for_leader: bool = True) -> None:
        """With `waits_for_leader` off, a call that finds no leader is refused at once."""
        self.shard = shard
        self.is_up = False
        self.repeats = 0
        self._waits_for_leader = waits_for_leader
        self._open: dict[int, OpenCall] = {}
        self._unsent: list[OpenCall] = []
        self._leaderless: dict[int, OpenCall] = {}  # to be asked again in a moment
        self._last_id = 0
        self._bytes = 0  # of all open calls
        self._drain_rate = DrainRate()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    @property
    def has_leaderless(self) -> bool:
        """Whether `retry` is to be called in `LEADERLESS_RETRY_S`."""
        return bool(self._leaderless)

    def add(self, call: OpenCall) -> None:
        """To be sent with the next message. Raises `Refusal` when too much is open already."""
        if len(self._open) >= CALLS_OPEN_MAX:
            raise self._overloaded(f"{CALLS_OPEN_MAX} requests wait for shard {self.shard}; try again")
        call.raw = encode(call.ask)
        if self._bytes + len(call.raw) > BYTES_OPEN_MAX and self._open:
            raise self._overloaded(f"{self._bytes} bytes wait for shard {self.shard}; try again")
        self._last_id += 1
        call.call_id, call.shard = self._last_id, self.shard
        self._keep(call)
        self._unsent.append(call)

    def _overloaded(self, sentence: str) -> Refusal:
        return Refusal("OVERLOADED", sentence, retry_after_ms=self._drain_rate.clears_in_ms(len(self._open)))

    def recall(self, call: OpenCall) -> Call | None:
        """End a wait early. A call that the shard has is answered at once when it is told so: empty, or with a claim
        that was on its way. Any other call ends here, empty."""
        if call.is_sent and self.is_up and call.call_id not in self._leaderless:
            return Call(call.call_id, 0, b"")
        self.drop(call)
        if not call.is_over():
            call.end([])
        return None

    def drop(self, call: OpenCall) -> None:
        """Its answer is not wanted any more."""
        if self._open.pop(call.call_id, None) is not None:
            self._bytes -= len(call.raw)
            self._leaderless.pop(call.call_id, None)

    def take_all(self) -> list[OpenCall]:
        """Every open call, for who closes the connection or asks something else."""
        calls = list(self._open.values())
        self._open.clear()
        self._unsent.clear()
        self._leaderless.clear()
        self._bytes = 0
        return calls

    # Out

    def send(self, now: float, send: Callable[[list[Call]], bool]) -> None:
        """Everything that waits, in as few messages as its size allows. What `send` does not take waits on."""
        if not self.is_up or not self._unsent:
            return  # sent when the connection comes up
        unsent = [call for call in self._unsent if call.call_id in self._open and not call.is_over()]
        self._unsent = []
        if not unsent:
            return
        for calls in self._messages(unsent):
            if self._unsent or not send([Call(each.call_id, _ms_left(each, now), each.raw) for each in calls]):
                self._unsent += calls
                continue
            for call in calls:
                call.is_sent = True

    def _messages(self, calls: list[OpenCall]) -> Iterable[list[OpenCall]]:
        if self._bytes <= BYTES_PER_MESSAGE and len(calls) <= CALLS_PER_MESSAGE_MAX:
            return (calls,)  # nearly always: all that is open would fit
        return pieces(calls, _size, BYTES_PER_MESSAGE, CALLS_PER_MESSAGE_MAX)

    # In

    def receive(self, replies: Sequence[Reply], now: float) -> Sequence[str]:
        """End the calls that are answered. What could not be read, for the log."""
        self._drain_rate.done(len(replies), int(now * 1e9))
        faults: list[str] = []
        for reply in replies:
            call = self._open.pop(reply.id, None)
            if call is None:
                continue
            self._bytes -= len(call.raw)
            if call.is_over():
                continue
            try:
                call.end(decode_result(type(call.ask), reply))
            except Refusal as refusal:
                if self._waits_for_leader and refusal.code in LEADERLESS:
                    self._await_leader(call, refusal, now)
                else:
                    call.end(refusal)
            except ValueError as error:
                faults.append(f"{type(call.ask).__name__}: {error}")
                call.end(Refusal("INTERNAL_ERROR", f"shard {self.shard} gave an unreadable answer"))
        return faults

    def _await_leader(self, call: OpenCall, refusal: Refusal, now: float) -> None:
        """Ask again while an election may still bring a leader in time. The final refusal is true of all tries: for an
        operation that a leader may have acted on, the outcome is unknown; a question can simply be asked again."""
        if now - call.refused_at > LEADERLESS_ASKED_S:
            call.leaderless_since = now  # a leader had taken it since, and it waited
        call.refused_at = now
        call.is_uncertain |= refusal.code == "OUTCOME_UNKNOWN" and isinstance(call.ask, Operation)
        is_wait = isinstance(call.ask, Fetch | Await) and call.ask.wait_ms > 0
        patience_s = LEADERLESS_WAIT_S if is_wait else LEADERLESS_S
        if now > max(call.asked_at + LEADERLESS_ASKED_S, call.leaderless_since + patience_s) or now > call.deadline:
            call.end(_outcome_unknown(self.shard) if call.is_uncertain else _leaderless(self.shard))
            return
        self._keep(call)
        self._leaderless[call.call_id] = call

    def retry(self) -> None:
        """The calls that found no leader are sent again."""
        leaderless, self._leaderless = self._leaderless, {}
        for call in leaderless.values():
            self.repeats += 1
            if call.is_uncertain:
                self._mark_repeated(call)
            self._unsent.append(call)

    # The connection

    def come_up(self) -> None:
        """The shard is there, or back. What it may have been asked before is sent again, marked as a repetition."""
        self.is_up = True
        for call in self._open.values():
            if call.is_sent:
                self.repeats += 1
                self._mark_repeated(call)
        self._unsent = [call for call in self._open.values() if call.call_id not in self._leaderless]

    def go_down(self) -> None:
        self.is_up = False

    def expire(self, now: float) -> None:
        """Refuse the calls whose deadline has passed."""
        for call in [call for call in self._open.values() if call.deadline <= now]:
            self.drop(call)
            if not call.is_over():
                call.end(self._unanswered(call))

    def _unanswered(self, call: OpenCall) -> Refusal:
        if self.is_up:
            return Refusal("DEADLINE_EXCEEDED", f"shard {self.shard} did not answer in time; it may still take effect")
        return _outcome_unknown(self.shard) if call.is_sent else unreachable(self.shard)

    def _keep(self, call: OpenCall) -> None:
        self._open[call.call_id] = call
        self._bytes += len(call.raw)

    def _mark_repeated(self, call: OpenCall) -> None:
        if isinstance(call.ask, Fetch):
            self._bytes -= len(call.raw)
            call.raw = encode(msgspec.structs.replace(call.ask, is_repeated=True))
            self._bytes += len(call.raw)


def _size(call: OpenCall) -> int:
    return len(call.raw)


def _ms_left(call: OpenCall, now: float) -> int:
    return max(int((call.deadline - now) * 1000), 1)


def _outcome_unknown(shard: int) -> Refusal:
    return Refusal(
        "OUTCOME_UNKNOWN",
        f"shard {shard} was lost while the request was in flight; check before you repeat it",
        retry_after_ms=1_000,
    )


def _leaderless(shard: int) -> Refusal:
    return Refusal(
        "NOT_LEADER", f"shard {shard} has no leader at the moment; send the request again", retry_after_ms=500
    )


def unreachable(shard: int) -> Refusal:
    return Refusal("SHARD_UNAVAILABLE", f"shard {shard} is not reachable; try again", retry_after_ms=1_000)
