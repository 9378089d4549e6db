"""The picture of `corvo top` from two looks."""

import io

import pytest
from rich.console import Console

from corvo.cli.screen.dashboard import Line, Look, Rates, age, allot, picture, rates, short, sparkline
from corvo.model.incidents import Incident
from tests.cli.answers import NOON, NOON_NS, a_cluster, a_look, a_queue, a_replica, a_shard, a_status, a_worker


def drawn(
    before: Look | None, after: Look, size: tuple[int, int] = (80, 24), line: Line = Line(1.0), samples: int = 60
) -> str:
    screen = Console(record=True, file=io.StringIO(), width=size[0], height=size[1], color_system=None)
    history = [rates(before, after)] * samples
    screen.print(picture(before, after, history, line, size))
    return screen.export_text()


def test_rates_are_differences_over_the_time_between_two_looks() -> None:
    before = a_look(10.0, queues=[a_queue(enqueued=100, completed_total=50, failed=5)])
    after = a_look(12.0, queues=[a_queue(enqueued=300, completed_total=60, failed=5), a_queue("new", enqueued=8)])

    assert rates(before, after) == Rates(enqueued=104.0, completed=5.0, failed=0.0)


def test_a_counter_that_went_back_is_no_negative_rate() -> None:
    assert rates(a_look(1, queues=[a_queue(enqueued=9)]), a_look(2, queues=[a_queue(enqueued=3)])) == Rates()


def test_the_first_look_has_the_rates_of_the_server() -> None:
    queue = a_queue(enqueued=9, enqueued_per_s=2.5, completed_per_s=1.5, failed_per_s=0.5)
    look = a_look(queues=[queue, a_queue("sms", enqueued_per_s=1.5)])

    assert rates(None, look) == Rates(enqueued=4.0, completed=1.5, failed=0.5)
    lines = {line.split()[0]: line.split() for line in drawn(None, look).splitlines() if line.strip()}
    assert lines["mail"][-2:] == ["2.5", "1.5"]


def test_the_picture_shows_queues_shards_and_workers() -> None:
    before = a_look(1.0, queues=[a_queue(enqueued=0)])
    after = a_look(
        2.0,
        status=a_status(groups=[a_shard(0, operations_total=1500, mirror_lag_entries=17)], shards=1),
        queues=[a_queue(pending=12_345, active=6, enqueued=420, completed=77, completed_total=77)],
        workers=[a_worker(active_jobs=6, is_waiting=True)],
    )
    before = Look(1.0, NOON_NS, a_status(1), before.queues, [])

    lines = {line.split()[0]: line.split() for line in drawn(before, after).splitlines() if line.strip()}

    assert lines["mail"] == ["mail", "12.3k", "6", "0", "0", "0", "77", "420", "77"]
    assert lines["0"] == ["0", "node-1", "3", "90", "500", "11.1", "0.42", "0", "17"]
    assert lines["w1"] == ["w1", "host-a", "mail", "0s", "yes", "6"]
    assert lines["enqueued/s"][1] == "420"


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
def test_the_picture_fits_the_terminal_whatever_there_is_to_show(size: tuple[int, int]) -> None:
    after = a_look(
        2.0,
        status=a_status(
            64,
            status="degraded",
            reasons=["node-2 does not answer"] * 9,
            restarts={f"shard-{number}": 3 for number in range(64)},
            incidents=[Incident(NOON, "shard-1", "x" * 300)],
        ),
        queues=[a_queue(f"{'q' * 190}-{number}", pending=10**9, completed=10**12) for number in range(300)],
        workers=[a_worker("w" * 200 + str(number), hostname="h" * 200, queues=["q" * 99] * 9) for number in range(300)],
    )

    shown = drawn(None, after, size, Line(1.0, trouble="nothing answers at " + "x" * 300)).splitlines()

    assert len(shown) <= size[1]
    assert max(map(len, shown)) <= size[0]
    assert sum("more" in line for line in shown) == 3
    assert any("QUEUE" in line for line in shown) and any("WORKER" in line for line in shown)


def test_restarts_and_the_last_incident_are_a_line() -> None:
    incidents = [Incident(NOON, "mirror", "exit status 1"), Incident(NOON, "shard-1", "terminated by SIGKILL")]
    hurt = a_look(status=a_status(restarts={"mirror": 1, "shard-0": 0, "shard-1": 2}, incidents=incidents))

    shown = drawn(None, hurt).splitlines()

    assert shown[1] == "restarts: mirror 1, shard-1 2 · last 0s ago: shard-1, terminated by SIGKILL"
    assert "restarts" not in drawn(None, a_look())


def test_an_old_picture_says_so() -> None:
    shown = drawn(None, a_look(), line=Line(1.0, trouble="nothing answers at http://x", age_s=7.2))

    assert shown.startswith("STALE 7 s") and "retrying" in shown


def test_a_frozen_picture_says_so() -> None:
    assert "FROZEN" in drawn(None, a_look(), line=Line(1.0, is_frozen=True))


def test_a_shard_without_an_answer_shows_its_error() -> None:
    after = a_look(status=a_status(groups=[a_shard(0, error="no answer"), a_shard(1, leader_id="")]))

    shown = drawn(None, after)

    assert "no answer" in shown and "none" in shown


def test_in_a_cluster_every_shard_shows_how_far_its_followers_are_behind() -> None:
    away = a_replica("node-3", lag=None, error="node-3 does not answer")
    after = a_look(status=a_cluster(a_replica(lag=1_234), away))

    lines = drawn(None, after).splitlines()

    (heading,) = [line for line in lines if line.startswith("SHARD")]
    (row,) = [line for line in lines if line.startswith("0 ")]
    assert heading.split()[-1] == "REPLICAS" and row.split()[-1] == "1.2k/?"
    assert "REPLICAS" not in drawn(None, a_look())


def test_a_short_list_keeps_its_place_beside_a_long_one() -> None:
    assert allot([100, 4, 1], 12) == [7, 4, 1]
    assert allot([1, 1, 1], 12) == [1, 1, 1]
    assert allot([5, 5, 5], 0) == [0, 0, 0]


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (0.44, "0.4"), (17, "17"), (999, "999"), (1000, "1.0k"), (12_345, "12.3k"), (99_960, "100k"),
     (456_000, "456k"), (999_999, "1.0M"), (1_234_567, "1.2M"), (10**12, "1T")],
)  # fmt: skip
def test_numbers_are_short(number: float, text: str) -> None:
    assert short(number) == text


def test_sparklines_rise_to_the_highest_sample() -> None:
    assert sparkline([0, 4, 8]) == "▁▅█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""


def test_ages_are_in_the_largest_whole_unit() -> None:
    assert [age(NOON, NOON_NS + seconds * 10**9) for seconds in (-5, 59, 61, 7200, 200_000)] == [
        "0s", "59s", "1m", "2h", "2d",
    ]  # fmt: skip
    assert age("never", NOON_NS) == "?"
