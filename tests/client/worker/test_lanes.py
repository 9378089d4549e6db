"""Credits: how many jobs a lane asks for."""

from hypothesis import given
from hypothesis import strategies as st

from corvo.client.worker.lanes import AHEAD_MAX, Lane


def test_a_lane_asks_for_its_free_slots_once() -> None:
    lane = Lane(["q"], 10)
    assert lane.wanted() == 10
    lane.ask(10)
    assert lane.wanted() == 0

    lane.answered(10, 4)
    assert lane.wanted() == 6


def test_short_jobs_are_claimed_ahead_and_long_ones_are_not() -> None:
    lane = Lane(["q"], 10)
    lane.occupied = 1
    lane.ended(0.000_05)
    assert lane.wanted() == 512
    assert lane.ahead == AHEAD_MAX

    for _ in range(200):
        lane.occupied += 1
        lane.ended(0.2)
    assert lane.ahead == 0


def test_the_number_to_claim_ahead_can_be_given() -> None:
    assert Lane(["q"], 1, prefetch=0).wanted() == 1
    assert Lane(["q"], 1, prefetch=5).wanted() == 6


def test_a_second_fetch_follows_a_full_one() -> None:
    lane = Lane(["q"], 1000)
    lane.ask(lane.wanted())
    lane.answered(512, 512)
    lane.ask(lane.wanted())
    assert lane.wanted() == 0  # 488 are asked for, and all slots are accounted for
    lane.occupied -= 100
    assert lane.wanted() == 100


@given(st.integers(1, 50), st.lists(st.tuples(st.integers(0, 600), st.floats(0, 2)), max_size=40))
def test_no_more_jobs_are_held_than_there_is_room_for(slots: int, answers: list[tuple[int, float]]) -> None:
    lane = Lane(["q"], slots)
    for jobs, seconds in answers:
        count = lane.wanted()
        assert 0 <= count <= 512
        if count:
            lane.ask(count)
            lane.answered(count, min(jobs, count))
        assert lane.occupied <= slots + AHEAD_MAX
        if lane.occupied:
            lane.ended(seconds)
