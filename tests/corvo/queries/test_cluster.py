"""What a shard says about itself."""

import pytest

from corvo.queries.cluster import ENDPOINTS, Histogram


@pytest.mark.parametrize(("value", "bucket"), [(0.5, 0), (1.0, 0), (1.5, 1), (2.0, 1), (2.1, 2), (1e9, 2)])
def test_a_value_is_counted_in_the_first_bucket_that_holds_it(value: float, bucket: int) -> None:
    histogram = Histogram([1.0, 2.0], [0, 0, 0])

    histogram.observe(value)

    assert histogram.counts == [int(number == bucket) for number in range(3)]
    assert (histogram.count, histogram.total) == (1, value)


@pytest.mark.parametrize(
    ("counts", "part", "value"),
    [
        ([0, 0, 0], 0.5, 0.0),
        ([4, 0, 0], 0.5, 0.5),
        ([4, 4, 0], 0.5, 1.0),
        ([4, 4, 0], 0.75, 1.5),
        ([0, 10, 0], 0.99, 1.99),
        ([1, 0, 9], 0.9, 2.0),
    ],
)
def test_a_quantile_is_estimated_from_the_buckets(counts: list[int], part: float, value: float) -> None:
    assert Histogram([1.0, 2.0], counts).quantile(part) == pytest.approx(value)


def test_status_and_versions_have_a_route() -> None:
    assert {endpoint.path for endpoint in ENDPOINTS} >= {"/cluster/status", "/info"}
