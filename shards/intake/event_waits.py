"""Calls that wait at this replica for events.

Any replica serves them, leader or not. While the event log does not grow, nothing is looked at. While it
grows, a call is answered at most once in `GATHER_NS`, with all events since, and less often when many calls wait. A
turn has a bound on calls answered and on events read: watching must not slow down work. A call beyond the bound waits
for the next turn.
"""

from collections.abc import Callable

import msgspec

from corvo.model.errors import Refused
from corvo.queries.events import NOW, EventsFound, GetEvents
from corvo.state.event_log import EventLog
from shards.intake.waiters import CallKey, PendingCall

LISTENERS_MAX = 4_096
LISTENERS_PER_TURN = 64
EVENTS_PER_TURN = 10_000  # looked at; about 10 ms
GATHER_NS = 10_000_000
GATHER_EACH_NS = 500_000  # for every call that waits: 2,000 answers a second for all together
PASS_EACH_NS = 5_000  # between two walks over many calls: some ten times what a walk takes

_FULL = Refused("OVERLOADED", "too many calls wait for events at this shard; retry", 1_000)


class EventWait(msgspec.Struct):
    waiting: PendingCall
    ask: GetEvents  # `after` moves on past what it does not ask for


class EventWaits:
    def __init__(self, event_log: EventLog, answer: Callable[[bytes, int, object], None]) -> None:
        self._event_log = event_log
        self._answer = answer
        self._parked: dict[CallKey, EventWait] = {}
        self._seen = 0  # the last event of the log when it was looked at
        self._again_ns: int | None = None  # when a call must be answered although nothing happens
        self._pass_ns = 0  # new events wait until then
        self._left = EVENTS_PER_TURN
        self._is_behind = False  # a call waits that should have been answered

    def __len__(self) -> int:
        return len(self._parked)

    def admit(self, waiting: PendingCall, ask: GetEvents) -> None:
        """Answered at once if there is an event, or no wait was asked for; else it waits."""
        moment_ns = waiting.arrived_ns
        if not self._is_behind and self._left > 0:
            found = self._look(ask)
            if found.events or found.missed or not ask.wait_ms:
                self._answer(waiting.peer, waiting.call_id, found)
                return
            ask.after = found.upto
            moment_ns = waiting.arrived_ns if found.has_more else waiting.wait_until_ns
        if len(self._parked) >= LISTENERS_MAX and waiting.key not in self._parked:
            self._answer(waiting.peer, waiting.call_id, _FULL)
        else:
            self._parked[waiting.key] = EventWait(waiting, ask)
            self._look_by(moment_ns)

    def recall(self, key: CallKey) -> bool:
        event_wait = self._parked.pop(key, None)
        if event_wait is not None:
            self._answer(*key, EventsFound(max(event_wait.ask.after, 0), []))  # it is not read
        return event_wait is not None

    def turn(self, now_ns: int) -> None:
        if self._parked and self._is_time(now_ns):
            self._walk(now_ns)
        self._left = EVENTS_PER_TURN

    def _is_time(self, now_ns: int) -> bool:
        if self._again_ns is not None and now_ns >= self._again_ns:
            return True
        return self._seen != self._event_log.last and now_ns >= self._pass_ns

    def _walk(self, now_ns: int) -> None:
        self._seen = self._event_log.last
        self._again_ns = None
        self._is_behind = False
        self._pass_ns = now_ns + max(len(self._parked) - LISTENERS_PER_TURN, 0) * PASS_EACH_NS
        gather_ns = max(GATHER_NS, len(self._parked) * GATHER_EACH_NS)
        looks = 0
        for key, event_wait in list(self._parked.items()):
            waiting, ask = event_wait.waiting, event_wait.ask
            is_over = now_ns >= waiting.wait_until_ns
            if not is_over and ask.after >= self._seen:
                self._look_by(waiting.wait_until_ns)
            elif not is_over and now_ns < waiting.arrived_ns + gather_ns:
                self._look_by(min(waiting.arrived_ns + gather_ns, waiting.wait_until_ns))
            elif now_ns > waiting.deadline_ns:
                del self._parked[key]  # the caller has given up
            elif looks == LISTENERS_PER_TURN or self._left <= 0:
                self._is_behind = True
                self._look_by(now_ns)
            else:
                looks += 1
                self._serve_one(key, event_wait, is_over, now_ns)

    def _serve_one(self, key: CallKey, event_wait: EventWait, is_over: bool, now_ns: int) -> None:
        del self._parked[key]
        found = self._look(event_wait.ask)
        if found.events or found.missed or is_over:
            self._answer(*key, found)
            return
        event_wait.ask.after = found.upto
        self._parked[key] = event_wait  # behind all others
        self._look_by(now_ns if found.has_more else event_wait.waiting.wait_until_ns)

    def _look(self, ask: GetEvents) -> EventsFound:
        found = ask.look(self._event_log)
        if ask.after != NOW:
            self._left -= found.upto - max(ask.after, self._event_log.first - 1)
        return found

    def next_ns(self) -> int | None:
        """When `turn` must be called although nothing arrives; in the past: now."""
        if not self._parked:
            return None
        if self._seen == self._event_log.last:
            return self._again_ns
        return self._pass_ns if self._again_ns is None else min(self._pass_ns, self._again_ns)

    def _look_by(self, moment_ns: int) -> None:
        self._again_ns = moment_ns if self._again_ns is None else min(self._again_ns, moment_ns)
