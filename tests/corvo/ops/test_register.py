"""The register of operations and queries: numbers for ever, routes once."""

from corvo import ops, queries
from corvo.model.errors import STATUS
from corvo.ops import ENDPOINTS, OPERATIONS, RETIRED

ALL_ENDPOINTS = (*ENDPOINTS, *queries.ENDPOINTS)


def tag_of(ask: type) -> int:
    return ask.__struct_config__.tag


def test_numbers_are_unique_and_never_given_out_again() -> None:
    numbers = [tag_of(ask) for ask in (*OPERATIONS, *queries.QUERIES)]

    assert len(set(numbers)) == len(numbers)
    assert not RETIRED & set(numbers)


def test_operations_keep_their_numbers() -> None:
    assert {ask.__name__: tag_of(ask) for ask in OPERATIONS}.items() >= {
        "Enqueue": 1,
        "Fetch": 2,
        "Ack": 3,
        "Fail": 4,
        "Heartbeat": 5,
        "Cancel": 6,
        "Promote": 100,
        "Reclaim": 101,
    }.items()


def test_every_ask_says_what_it_returns() -> None:
    assert all(ask.result is not None for ask in (*OPERATIONS, *queries.QUERIES))


def test_routes_and_names_are_unique() -> None:
    routes = [(endpoint.method, endpoint.path) for endpoint in ALL_ENDPOINTS]
    names = [endpoint.name for endpoint in ALL_ENDPOINTS]

    assert len(set(routes)) == len(routes)
    assert len(set(names)) == len(names)


def test_a_fixed_route_stands_before_the_one_with_a_parameter_that_would_swallow_it() -> None:
    for number, endpoint in enumerate(ALL_ENDPOINTS):
        for later in ALL_ENDPOINTS[number + 1 :]:
            swallowed = (
                endpoint.method == later.method
                and endpoint.path.count("/") == later.path.count("/")
                and all(
                    mine.startswith("{") or mine == theirs
                    for mine, theirs in zip(endpoint.path.split("/"), later.path.split("/"), strict=True)
                )
            )
            assert not swallowed, f"{endpoint.path} swallows {later.path}"


def test_every_route_has_a_summary_an_answer_and_known_refusals() -> None:
    for endpoint in ALL_ENDPOINTS:
        assert endpoint.summary
        assert endpoint.answers
        assert set(endpoint.refusals) <= set(STATUS)


def test_the_union_of_operations_holds_them_all() -> None:
    assert set(ops.AnyOperation.__args__) == set(OPERATIONS)
