"""What a shard says about itself."""

import pytest

from corvo.queries.cluster import ENDPOINTS, Histogram


@pytest.mark.parametrize(("value", "bucket"), [(0.5, 0), (1.0, 0), (1.5, 1), (2.0, 1), (2.1, 2), (1e9, 2)])
def test_a_value_is_counted_in_the_first_bucket_that_holds_it(value: float, bucket: int) -> None:
    histogram = Histogram([1.0, 2.0], [0, 0, 0])

    histogram.observe(value)

    assert histogram.counts == [int(number == bucket) for number in range(3)]
    assert (histogram.count, histogram.total) == (1, value)


def test_status_and_versions_have_a_route() -> None:
    assert {endpoint.path for endpoint in ENDPOINTS} >= {"/cluster/status", "/info"}
