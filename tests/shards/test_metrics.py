"""What a replica counts: buckets in order, nothing shared between replicas, nothing uncounted."""

import pytest

from corvo.queries.cluster import Histogram
from shards.metrics import ShardMetrics, seconds, sizes


@pytest.mark.parametrize("histogram", [seconds(), sizes()])
def test_every_observation_falls_into_exactly_one_bucket(histogram: Histogram) -> None:
    bounds = histogram.bounds
    assert bounds == sorted(bounds)

    for bound in bounds:
        histogram.observe(bound)  # a bound belongs to its bucket
    histogram.observe(bounds[-1] * 10)

    assert histogram.counts == [1] * (len(bounds) + 1)


def test_two_replicas_do_not_share_their_counts() -> None:
    one, other = ShardMetrics(), ShardMetrics()

    one.batch_size.observe(5)
    one.sync_time.observe(0.001)

    assert (one.batch_size.count, one.sync_time.count) == (1, 1)
    assert (other.batch_size.count, other.sync_time.count, one.apply_time.count) == (0, 0, 0)
