"""Calls that wait: first come, first woken, per queue; nobody is woken twice, nobody is forgotten."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corvo.queries.job import Await
from shards.intake.waiters import CallKey, PendingCall, Waiters
from tests.support.builders import fetch


def a_fetch(
    call_id: int, *queues: str, peer: bytes = b"gateway", count: int = 1, until: int = 1_000, arrived: int = 0
) -> PendingCall:
    ask = fetch(*(queues or ("mail",)), count=count, wait_ms=1)
    return PendingCall(peer, call_id, ask, b"", arrived, until, until)


def an_await(call_id: int, *queues: str, peer: bytes = b"gateway", until: int = 1_000) -> PendingCall:
    return PendingCall(peer, call_id, Await(list(queues) or ["mail"], "w1", "host", 1), b"", 0, until, until)


def park(waiters: Waiters, *calls: PendingCall) -> None:
    for call in calls:
        waiters.park(call, call.ask.queues)  # type: ignore[union-attr]


def ids(calls: list[PendingCall]) -> list[int]:
    return [call.call_id for call in calls]


def test_the_longest_waiting_is_woken_first_and_one_for_each_job() -> None:
    waiters = Waiters()
    park(waiters, a_fetch(1), a_fetch(2), a_fetch(3))

    assert ids(waiters.wake("mail", 2)) == [1, 2]
    assert ids(waiters.wake("mail", 2)) == [3]
    assert waiters.wake("mail", 2) == []


def test_a_fetch_for_many_jobs_counts_for_as_many() -> None:
    waiters = Waiters()
    park(waiters, a_fetch(1, count=3), a_fetch(2), a_fetch(3))

    assert ids(waiters.wake("mail", 4)) == [1, 2]


def test_a_call_that_waits_for_two_queues_is_woken_once() -> None:
    waiters = Waiters()
    park(waiters, a_fetch(1, "mail", "video"), a_fetch(2, "video"))

    assert ids(waiters.wake("mail", 5)) == [1]
    assert ids(waiters.wake("video", 5)) == [2]
    assert len(waiters) == 0


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_calls_that_were_woken_in_vain_come_back_to_their_old_places(order: list[int]) -> None:
    waiters = Waiters()
    park(waiters, a_fetch(1), a_fetch(2), a_fetch(3))
    woken = waiters.wake("mail", 2)

    park(waiters, a_fetch(4), *(woken[number] for number in order))

    assert ids(waiters.wake("mail", 9)) == [1, 2, 3, 4]


def test_coming_back_to_one_line_does_not_overtake_in_another() -> None:
    waiters = Waiters()
    park(waiters, a_fetch(1, "video"), a_fetch(2, "video", "mail"), a_fetch(3, "mail"))

    park(waiters, *waiters.wake("mail", 1))

    assert ids(waiters.wake("video", 1)) == [1]
    assert ids(waiters.wake("mail", 9)) == [2, 3]


def test_awaits_keep_their_places_and_their_share_when_only_fetches_are_woken() -> None:
    waiters = Waiters()
    park(waiters, an_await(1), a_fetch(2), an_await(3), a_fetch(4), a_fetch(5))

    assert ids(waiters.wake("mail", 4, only_fetches=True)) == [2, 4]
    assert ids(waiters.wake("mail", 9)) == [1, 3, 5]


def test_a_line_is_known_while_somebody_stands_in_it_and_no_longer() -> None:
    waiters = Waiters()
    assert not waiters.waits_for("mail")

    park(waiters, a_fetch(1, "mail", "video"))
    assert waiters.waits_for("mail") and waiters.waits_for("video")

    waiters.remove((b"gateway", 1))
    assert not waiters.waits_for("mail") and not waiters.waits_for("video")


def test_patience_ends_at_its_nanosecond_in_the_order_of_the_ends() -> None:
    waiters = Waiters()
    park(waiters, a_fetch(1, until=30), an_await(2, until=20), a_fetch(3, until=21))

    assert waiters.next_end_ns() == 20
    assert waiters.over(19) == []
    assert ids(waiters.over(21)) == [2, 3]
    assert ids(waiters.wake("mail", 9)) == [1]


def test_a_call_that_was_woken_or_removed_does_not_end_again() -> None:
    waiters = Waiters()
    park(waiters, a_fetch(1, until=20), a_fetch(2, until=20))

    waiters.wake("mail", 1)
    waiters.remove((b"gateway", 2))

    assert waiters.over(99) == []
    assert waiters.next_end_ns() is None, "ends that are past do not keep the shard awake"


def test_a_call_that_is_parked_again_ends_once() -> None:
    waiters = Waiters()
    park(waiters, a_fetch(1, until=20))
    park(waiters, *waiters.wake("mail", 1))

    assert ids(waiters.over(20)) == [1]
    assert waiters.over(99) == []


def test_the_calls_of_a_peer_that_is_gone_are_forgotten_and_no_others() -> None:
    waiters = Waiters()
    park(waiters, a_fetch(1, peer=b"a"), a_fetch(1, peer=b"b"), an_await(2, "video", peer=b"a"))

    waiters.forget_peer(b"a")

    assert len(waiters) == 1
    assert [call.peer for call in waiters.wake("mail", 9)] == [b"b"]
    assert waiters.wake("video", 9) == []


def test_a_call_that_is_sent_again_takes_the_place_of_its_first_sending() -> None:
    waiters = Waiters()
    park(waiters, a_fetch(1, "mail"))

    park(waiters, a_fetch(1, "video"))

    assert len(waiters) == 1
    assert waiters.wake("mail", 3) == []
    assert ids(waiters.wake("video", 3)) == [1]


# Against lists

_queues = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3, unique=True)
_calls = st.builds(
    lambda peer, call_id, queues, count, until, is_await: (
        an_await(call_id, *queues, peer=peer, until=until)
        if is_await
        else a_fetch(call_id, *queues, peer=peer, count=count, until=until)
    ),
    st.sampled_from([b"p", b"q"]),
    st.integers(1, 12),
    _queues,
    st.integers(1, 3),
    st.integers(1, 60),
    st.booleans(),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("park"), _calls, st.none()),
        st.tuples(st.just("park"), _calls, st.none()),
        st.tuples(st.just("come back"), st.integers(0, 3), st.none()),
        st.tuples(st.just("wake"), st.sampled_from(["a", "b", "c"]), st.integers(1, 4)),
        st.tuples(st.just("remove"), st.sampled_from([b"p", b"q"]), st.integers(1, 12)),
        st.tuples(st.just("over"), st.integers(1, 12), st.none()),
        st.tuples(st.just("forget"), st.sampled_from([b"p", b"q"]), st.none()),
    ),
    max_size=40,
)


@settings(max_examples=150)
@given(steps)
def test_parking_behaves_as_a_list_for_each_queue(steps: list[tuple[Any, ...]]) -> None:
    waiters = Waiters()
    lines: dict[str, list[CallKey]] = {"a": [], "b": [], "c": []}
    parked: dict[CallKey, PendingCall] = {}
    now = 0

    def take(key: CallKey) -> PendingCall | None:
        for line in lines.values():
            if key in line:
                line.remove(key)
        return parked.pop(key, None)

    came: list[CallKey] = []  # in the order of their first parking
    gone: list[PendingCall] = []

    for verb, what, value in steps:
        if verb == "park":
            call = msgspec.structs.replace(what)
            take(call.key)
            park(waiters, call)
            parked[call.key] = call
            came = [*(key for key in came if key != call.key), call.key]
            gone = [other for other in gone if other.key != call.key]
            for queue in call.ask.queues:
                lines[queue].append(call.key)
        elif verb == "come back":
            if what < len(gone):
                call = gone.pop(what)
                park(waiters, call)
                parked[call.key] = call
                for queue in call.ask.queues:
                    lines[queue] = sorted([*lines[queue], call.key], key=came.index)
        elif verb == "wake":
            expected, jobs = [], value
            while jobs > 0 and lines[what]:
                woken = take(lines[what][0])
                assert woken is not None
                expected.append(woken.key)
                gone.append(woken)
                jobs -= getattr(woken.ask, "count", 1)
            assert [call.key for call in waiters.wake(what, value)] == expected
        elif verb == "remove":
            assert waiters.remove((what, value)) is take((what, value))
        elif verb == "over":
            now += what
            ended = sorted(key for key, call in parked.items() if call.wait_until_ns <= now)
            assert sorted(call.key for call in waiters.over(now)) == ended
            for key in ended:
                take(key)
        else:
            waiters.forget_peer(what)
            for key in [key for key in parked if key[0] == what]:
                take(key)

        assert len(waiters) == len(parked)
        assert [queue for queue in lines if waiters.waits_for(queue)] == [queue for queue in lines if lines[queue]]
        earliest = min((call.wait_until_ns for call in parked.values()), default=None)
        known = waiters.next_end_ns()
        assert earliest is None or (known is not None and known <= earliest), "never later than the first end"
