import pytest

from corvo.model.errors import Refusal
from corvo.model.job_extras import ChainStep
from corvo.queries.batches import batch_view
from corvo.queries.batches_list import BatchesQuery
from corvo.rules.batches import Batch
from gateway.search import batches_list
from tests.support.builders import NOW

OPEN = Batch("s00_batch_1", NOW + 1, description="first", total=3)
SEALED = Batch(
    "s00_batch_2", NOW + 2, on_failure=ChainStep("f", b'{"a": 1.50}'), is_sealed=True, total=9, ended=[4, 3, 2, 0]
)
COMPLETED = Batch(
    *("s00_batch_3", NOW + 3, ChainStep("done"), ChainStep("good", b"[1]"), ChainStep("bad")),
    is_sealed=True,
    total=2,
    ended=[2, 0, 0, 0],
    finished_at=NOW + 9,
)


@pytest.fixture
def find(ask):
    return lambda **query: ask(batches_list.answer, BatchesQuery(**query))


def ids(answer):
    return [batch.id[-1] for batch in answer.batches]


@pytest.mark.parametrize("batch", [OPEN, SEALED, COMPLETED], ids=["open", "sealed", "completed"])
def test_a_batch_in_a_list_looks_as_it_does_alone(written, find, batch):
    written.put(batch)

    (found,) = find().batches

    assert found == batch_view(batch, written.shards)


def test_the_newest_comes_first(written, find):
    written.put(SEALED, COMPLETED, OPEN)

    answer = find()

    assert ids(answer) == ["3", "2", "1"]
    assert (answer.has_more, answer.cursor) == (False, None)
    assert answer.lag_ms >= 0


def test_batches_by_their_state(written, find):
    written.put(SEALED, COMPLETED, OPEN)

    assert [ids(find(state=state)) for state in ("open", "sealed", "completed")] == [["1"], ["2"], ["3"]]


@pytest.mark.parametrize("state", [None, "open"])
def test_pages_hold_every_batch_once(written, find, state):
    written.put(*[Batch(f"s00_batch_{number}", NOW + number // 3) for number in range(10)])
    pages, cursor = [], None

    while True:
        answer = find(limit=4, cursor=cursor, state=state)
        pages.append(ids(answer))
        cursor = answer.cursor
        if cursor is None:
            break
        assert answer.has_more

    assert pages == [["9", "8", "7", "6"], ["5", "4", "3", "2"], ["1", "0"]]


def test_a_batch_that_is_gone_is_not_listed(written, find):
    written.put(OPEN)
    assert ids(find()) == ["1"]

    written.delete_batches(OPEN.id)

    assert ids(find()) == []


def test_a_cursor_that_is_not_ours_is_refused(written, find):
    with pytest.raises(Refusal) as refusal:
        find(cursor="x")

    assert (refusal.value.code, refusal.value.field) == ("VALIDATION_ERROR", "cursor")


@pytest.mark.parametrize(("state", "index"), [(None, "idx_batches_created"), ("open", "idx_batches_state_created")])
def test_a_page_is_read_along_its_index_and_never_sorted(explain, state, index):
    _, steps = explain(batches_list._slice(BatchesQuery(state=state), None, 10))

    plan = str(steps)

    assert f"INDEX {index}" in plan
    assert "TEMP B-TREE" not in plan
