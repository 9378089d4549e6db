"""What people type is text: in filters, in tags, in words. And a search that has no time left says so."""

import asyncio

import msgspec
import pytest

from corvo.model.errors import Refusal
from corvo.model.job import JobError
from corvo.model.json_input import decode_body
from corvo.model.lifecycle import State
from corvo.model.reach import Reach
from corvo.queries.search import FulltextQuery, SearchBody
from gateway.search import candidates, fulltext, index_scan, search, words
from gateway.search.database import OutOfTime, ReadDb
from tests.gateway.search.conftest import Written
from tests.support.builders import NOW, a_job, job_id
from tests.support.read_dbs import FilePlace

HOSTILE = (
    "'; DROP TABLE jobs; --",
    "a' OR '1'='1",
    "%",
    "_",
    "%%%",
    "50%",
    "\\",
    "\\\\\\",
    '"',
    '""" OR ""',
    "abc OR def",
    "abc AND NOT def",
    "NEAR(abc def, 2)",
    "text: abc",
    "{text}: abc",
    "abc*",
    "^abc",
    "-abc",
    "(abc",
    "abc)",
    "jobs_fts",
    "$.a[0]",
    '$."a"',
    "$[#-1]",
    ":name",
    "?1",
    "\x00",
    "a\x00b",
    "abc\x00def",
    "\x01\x02\x03",
    "\ufeff",
    "\uffff",
    "𝕏𝕐ℤ",
    "e\u0301e\u0301",
    "a" * 1_024,
    '"' * 1_024,
)


@pytest.fixture
def find(ask):
    return lambda **body: ask(search.answer, SearchBody(**body))


@pytest.fixture
def read(ask):
    return lambda q, **rest: ask(fulltext.answer, FulltextQuery(q=q, **rest))


def ids(answer):
    return [job.id for job in answer.jobs]


@pytest.mark.parametrize("is_indexed", [False, True])
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:12]))
def test_hostile_text_means_itself(written, find, read, text, is_indexed):
    stored = msgspec.json.encode({"key": text})
    written.put(
        a_job(1, payload=b'{"key":"nothing"}'),
        a_job(2, payload=stored, tags=msgspec.json.encode({text: text, "t": 1})),
        a_job(3, tags=b'{"t":"1"}'),
        JobError(job_id(1), 1, 1, f"before {text} after", "", NOW),
        JobError(job_id(3), 1, 1, "nothing", "", NOW),
    )
    if is_indexed:
        assert not written.writer.index(1_000)

    payloads = {1: '{"key":"nothing"}', 2: stored.decode(), 3: "{}"}
    assert ids(find(payload_contains=text, order="asc")) == [
        job_id(number) for number, payload in payloads.items() if text in payload
    ]
    assert ids(find(error_contains=text)) == [job_id(1)]
    assert ids(find(tags={text: text})) == [job_id(2)]
    assert ids(find(tags={"t": text})) == []
    assert ids(find(tags={text: "other"})) == []
    assert ids(find(unique_key=text[:256])) == []
    assert read(text).q == text  # whatever it finds: no syntax
    with pytest.raises(Refusal) as refusal:
        find(payload_jq=text + " =")
    assert (refusal.value.code, refusal.value.field) == ("VALIDATION_ERROR", "payload_jq")


@pytest.mark.parametrize(
    "body",
    [
        rb'{"payload_contains":"\ud800"}',
        rb'{"error_contains":"\udc00\ud800"}',
        rb'{"tags":{"\ud800":"x"}}',
        rb'{"tags":{"x":"\ud83d"}}',
        b'{"payload_contains":"\xed\xa0\x80"}',
        b'{"payload_contains":""}',
        b'{"payload_contains":"' + b"a" * 1_025 + b'"}',
        b'{"tags":{"x":null}}',
        b'{"tags":{"x":[1]}}',
        b'{"tags":{"x":1e999}}',
        b'{"tags":{' + b",".join(b'"%d":1' % number for number in range(17)) + b"}}",
        b'{"attempt_min":-1}',
        b'{"attempt_max":1e30}',
        b'{"sort":"payload"}',
        b'{"sort":"id; DROP TABLE jobs"}',
    ],
)
def test_what_cannot_be_meant_is_refused(body):
    with pytest.raises(Refusal) as refusal:
        decode_body(msgspec.json.Decoder(SearchBody), body)

    assert refusal.value.code in ("VALIDATION_ERROR", "PARSE_ERROR")


def test_a_number_that_no_tag_can_hold_is_refused(find):
    with pytest.raises(Refusal) as refusal:
        find(tags={"n": 10**400})

    assert refusal.value.field == "tags.n"


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_tag_is_a_value_of_json_with_its_type(written, find, is_indexed):
    tags = [b'{"v":1}', b'{"v":1.0}', b'{"v":"1"}', b'{"v":true}', b'{"v":false}', b'{"v":null}', b'{"v":[1]}', b"{}"]
    written.put(*[a_job(number, tags=document) for number, document in enumerate(tags)], a_job(99))
    if is_indexed:
        written.writer.index(1_000)

    def found(value):
        return [int(job[-4:]) for job in ids(find(tags={"v": value}, order="asc"))]

    assert [found(1), found(1.0), found("1"), found(True), found(False), found("[1]")] == [
        [0, 1],
        [0, 1],
        [2],
        [3],
        [4],
        [],
    ]


def test_tags_that_sqlite_cannot_read_are_none(written, find):
    written.put(a_job(1, tags=b"{not json"), a_job(2, tags=b'{"a":"b"}'))
    written.writer.index(1_000)

    assert ids(find(tags={"a": "b"})) == [job_id(2)]


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_substring_is_one_of_the_stored_text(written, find, is_indexed):
    written.put(
        a_job(1, payload='{"name":"café"}'.encode()),
        a_job(2, payload=rb'{"name":"caf\u00e9"}'),
        a_job(3, payload=b'{"name":"CAFE"}'),
    )
    if is_indexed:
        written.writer.index(1_000)

    assert ids(find(payload_contains="café")) == [job_id(1)]
    assert ids(find(payload_contains="caf\\u00e9")) == [job_id(2)]
    assert ids(find(payload_contains="cafe")) == []
    assert ids(find(payload_contains="AF")) == [job_id(3)]
    # jq means the value, however it was written
    assert ids(find(payload_jq='.name == "café"', order="asc")) == [job_id(1), job_id(2)]


def test_a_long_text_is_found_behind_the_part_that_is_indexed(written, find):
    long = b'{"filler":"' + b"x" * 40_000 + b'","end":"needle"}'
    written.put(a_job(1, payload=long), a_job(2, payload=b'{"end":"needle"}'), a_job(3))
    written.writer.index(1_000)

    assert ids(find(payload_contains="needle", order="asc")) == [job_id(1), job_id(2)]
    assert ids(find(payload_jq='.end == "needle"', order="asc")) == [job_id(1), job_id(2)]


@pytest.mark.parametrize("is_indexed", [False, True])
def test_words_are_found_whatever_their_case_in_all_texts_of_a_job(written, read, is_indexed):
    written.put(
        a_job(1, payload=b'{"to":"Ada.Lovelace@example.org","note":"first\\nsecond"}', created_at=NOW + 1),
        a_job(2, payload=b"{}", tags=b'{"team":"Analytics"}', result=b'{"pages":"caf\\u00e9"}', created_at=NOW + 2),
        a_job(3, state=State.DEAD, created_at=NOW + 3),
        JobError(job_id(1), 1, 1, "Connection refused by Analytics", "", NOW),
        JobError(job_id(3), 1, 1, "connection reset", "", NOW),
    )
    if is_indexed:
        written.writer.index(1_000)

    def found(q, **rest):
        return [int(hit.id[-4:]) for hit in read(q, **rest).results]

    assert found("connection") == [3, 1]
    assert found("CONNECTION refused") == [1]
    assert found("ada refused") == [1]  # in the payload and in the error
    assert found("lovelace@example.org") == [1]
    assert found("example lovelace") == [1]
    assert found("org@example") == []  # side by side, in this order
    assert found("second") == [1]
    assert found("analytics") == [2, 1]
    assert found("cafe") == [2]
    assert found("connect") == []  # whole words
    assert found("---") == []
    assert found("connection", limit=1) == [3]
    assert read("connection", limit=1).has_more
    assert read("connection").is_complete


def test_a_hit_shows_the_job(written, read):
    written.put(a_job(1, payload=b'{"a":  "word"}', tags=b'{"t":"x"}'), a_job(2, payload=b'{"a":"word"}'))

    without, hit = read("word").results

    assert (hit.id, hit.queue, hit.state, hit.created_at) == (
        job_id(1),
        "mail",
        "pending",
        "2026-01-01T00:00:00.000000000Z",
    )
    assert (bytes(hit.payload), bytes(hit.tags), without.tags) == (b'{"a":  "word"}', b'{"t":"x"}', None)


def test_words_of_more_new_jobs_than_can_be_looked_through_are_not_called_complete(tmp_path, monkeypatch):
    written = Written(FilePlace(tmp_path))
    written.put_cursor()
    read_db = ReadDb(written.path)

    def read(q):
        return asyncio.run(fulltext.answer(read_db.within(Reach()), FulltextQuery(q=q)))

    monkeypatch.setattr(fulltext, "UNINDEXED_MAX", 3)
    written.put(*[a_job(number, payload=b'{"a":"word"}') for number in range(5)])

    answer = read("word")
    assert (len(answer.results), answer.is_complete) == (3, False)

    written.writer.index(1_000)
    answer = read("word")
    assert (len(answer.results), answer.is_complete) == (5, True)
    read_db.close()
    written.close()


def test_words_are_looked_for_as_long_as_there_is_time(written, monkeypatch):
    """On PostgreSQL, which has no index of them."""
    monkeypatch.setattr(words, "SLICE", 2)
    written.put(*[a_job(number, payload=b'{"a":"word"}', created_at=NOW + number) for number in range(5)])
    if isinstance(written.place, FilePlace):
        written.writer.index(1_000)
    read_db = ReadDb(written.path)
    answer = asyncio.run(fulltext.answer(read_db.within(Reach()), FulltextQuery(q="word", limit=3)))
    assert ([hit.id for hit in answer.results], answer.has_more) == ([job_id(4), job_id(3), job_id(2)], True)

    monkeypatch.setattr(words, "SHARE", 0.0)  # no time for words at all
    answer = asyncio.run(fulltext.answer(read_db.within(Reach()), FulltextQuery(q="word")))

    assert answer.is_complete is isinstance(written.place, FilePlace)
    read_db.close()


def test_words_of_a_text_that_is_no_more_are_not_found(written, read):
    written.put(a_job(1, result=b'{"a":"former"}'))
    written.writer.index(1_000)
    written.put(a_job(1, result=b'{"a":"latter"}'))

    assert read("former").results == []
    assert [hit.id for hit in read("latter").results] == [job_id(1)]


def test_pages_of_words_pass_over_jobs_that_are_gone(written, read, monkeypatch):
    monkeypatch.setattr(fulltext, "PAGE", 2)
    written.put(*[a_job(number, payload=b'{"a":"word"}', created_at=NOW + number) for number in range(8)])
    written.writer.index(1_000)
    written.delete(*[job_id(number) for number in (7, 6, 5, 3)])

    assert [int(hit.id[-4:]) for hit in read("word", limit=3).results] == [4, 2, 1]


# Out of time


@pytest.fixture
def slices(monkeypatch):
    """After so many slices the time is up."""
    left = [0]
    original = index_scan._slice

    def counted(*arguments):
        if left[0] == 0:
            raise OutOfTime
        left[0] -= 1
        return original(*arguments)

    monkeypatch.setattr(index_scan, "_slice", counted)
    monkeypatch.setattr(index_scan, "SLICE_MIN", 10)
    monkeypatch.setattr(index_scan, "SLICE_MAX", 10)
    monkeypatch.setattr(candidates, "FEW_MAX", 0)

    def allow(number):
        left[0] = number

    return allow


@pytest.mark.parametrize("sort", ["created_at", "started_at", "attempt"])
def test_a_search_out_of_time_hands_back_what_it_has_and_goes_on_later(written, read_db, slices, sort):
    written.put(
        *[
            a_job(
                number,
                created_at=NOW + number,
                started_at=NOW + number if number % 3 else 0,
                attempt=number % 4,
                payload=b'{"a":"needle"}' if number % 20 == 7 else b"{}",
            )
            for number in range(100)
        ]
    )

    async def pages():
        found, cursor, incomplete = [], None, 0
        for _ in range(100):
            slices(2)
            body = SearchBody(payload_contains="needle", sort=sort, order="asc", limit=9, cursor=cursor)
            answer = await search.answer(read_db.within(Reach()), body)
            found += [int(job.id[-4:]) for job in answer.jobs]
            if answer.cursor is None:
                assert answer.is_complete and not answer.has_more
                return found, incomplete
            assert answer.has_more
            if not answer.is_complete:
                incomplete += 1
                assert (answer.total_is_exact, answer.total_relation) == (False, "at_least")
            cursor = answer.cursor
        raise AssertionError("the pages do not end")

    found, incomplete = asyncio.run(pages())

    assert sorted(found) == [7, 27, 47, 67, 87]
    assert incomplete >= 4


def test_a_search_that_cannot_even_begin_is_refused(written, find, slices):
    written.put(a_job(1))
    slices(0)

    with pytest.raises(Refusal) as refusal:
        find(payload_contains="needle")

    assert refusal.value.code == "DEADLINE_EXCEEDED"


def test_a_real_budget_ends_a_real_walk(written, monkeypatch):
    """Whatever the machine's speed: a walk that is too long either ends or says how far it came."""
    written.put(*[a_job(number, payload=b'{"a":"' + b"x" * 500 + b'"}') for number in range(3_000)])
    monkeypatch.setattr(candidates, "FEW_MAX", 0)
    monkeypatch.setattr(index_scan, "SLICE_MIN", 50)
    monkeypatch.setattr(index_scan, "SLICE_MAX", 50)
    read_db = ReadDb(written.path, budget_ms=25)

    async def pages():
        cursor, seen = None, 0
        while True:
            try:
                answer = await search.answer(read_db.within(Reach()), SearchBody(payload_contains="xy", cursor=cursor))
            except Refusal as refusal:
                assert refusal.code == "DEADLINE_EXCEEDED"
                return seen
            seen += 1
            assert answer.jobs == []
            if answer.is_complete:
                return seen
            cursor = answer.cursor

    assert asyncio.run(pages()) < 60
    read_db.close()
