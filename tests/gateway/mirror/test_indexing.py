"""The indexes of texts: late, interrupted, rebuilt, and always equal to the jobs in the end."""

import sqlite3

import pytest

from corvo.model.job import JobError, encode
from corvo.model.lifecycle import State
from corvo.state import keys
from gateway.mirror import indexing
from gateway.mirror.database import MirrorDb
from gateway.mirror.rows import to_rows, to_stretch
from gateway.mirror.shard_writes import ShardWrite
from gateway.readdb import text_index
from tests.gateway.search.conftest import Written
from tests.support.builders import NOW, a_job, job_id
from tests.support.read_dbs import FilePlace


@pytest.fixture
def written(tmp_path):
    made = Written(FilePlace(tmp_path), shards=2)
    yield made
    made.close()


def rows(written, sql, *values):
    return written.writer._connection.execute(sql, values).fetchall()


def progress(written):
    return rows(written, "SELECT jobs_seq, error_id FROM index_progress")[0]


def _marked(text, is_partial):
    """With the word of the namespace in front."""
    return f"{text_index.marker('default')}\n{text}", is_partial


def documents(written):
    return rows(written, "SELECT count(*) FROM documents")[0][0]


def with_grams(written, *grams):
    match = " AND ".join(f'"{gram}"' for gram in grams)
    found = rows(
        written,
        "SELECT job_id FROM documents WHERE doc IN (SELECT rowid FROM jobs_grams WHERE jobs_grams MATCH ?)"
        " ORDER BY job_id",
        match,
    )
    return [name for (name,) in found]


def check_equal(written):
    """The index holds every job's text as it is now, and nothing else."""
    expected = {
        (job, shard): (*_marked(*text_index.document(payload, tags, result, errors)), tags)
        for job, shard, payload, tags, result, errors in rows(
            written,
            "SELECT id, shard, payload, tags, result, (SELECT group_concat(error, char(10)) FROM job_errors e"
            " WHERE e.job_id = j.id AND e.shard = j.shard) FROM jobs j",
        )
    }
    stored = rows(written, "SELECT job_id, shard, text, is_partial, tags, doc FROM documents")
    assert {
        (job, shard): (text, bool(is_partial), tags) for job, shard, text, is_partial, tags, _ in stored
    } == expected
    for table in ("jobs_grams", "jobs_fts"):
        rows(written, f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
    anew = sqlite3.connect(":memory:")
    for statement in text_index.VIRTUAL_TABLES:
        anew.execute(statement)
    for _, _, text, _, _, doc in stored:
        anew.execute("INSERT INTO jobs_grams (rowid, text) VALUES (?, ?)", (doc, text))
    find = "SELECT rowid FROM jobs_grams WHERE jobs_grams MATCH ? ORDER BY rowid"
    texts = [text for _, _, text, *_ in stored]
    for gram in {text[at : at + 3] for text in texts for at in range(len(text) - 2)} | {"old", "new", "err"}:
        quoted = '"' + gram.replace('"', '""') + '"'
        assert rows(written, find, quoted) == anew.execute(find, (quoted,)).fetchall()
    anew.close()


def finish(written):
    while written.writer.index(1_000):
        pass


def test_documents_are_made_behind_the_jobs(written):
    written.put(a_job(1, payload=b'{"a":"abcd"}', tags=b'{"t":"x","n":1}'), a_job(2))
    assert progress(written) == (0, 0)

    assert not written.writer.index(1_000)

    assert documents(written) == 2
    assert with_grams(written, "abc", "bcd") == [job_id(1)]
    assert rows(written, "SELECT key, value FROM job_tags ORDER BY key") == [("n", 1), ("t", "x")]
    check_equal(written)


def test_a_job_that_changes_keeps_its_document_and_its_number(written):
    written.put(a_job(1, payload=b'{"a":"abcd"}'))
    finish(written)
    ((doc,),) = rows(written, "SELECT doc FROM documents")
    entries = rows(written, "SELECT count(*) FROM jobs_grams_data")

    written.put(a_job(1, payload=b'{"a":"abcd"}', state=State.ACTIVE, worker_id="w1"))
    finish(written)

    assert rows(written, "SELECT doc FROM documents") == [(doc,)]
    assert rows(written, "SELECT count(*) FROM jobs_grams_data") == entries  # the same text is not entered again
    written.put(a_job(1, payload=b'{"a":"abcd"}', state=State.COMPLETED, result=b'{"r":"new"}'))
    finish(written)
    assert with_grams(written, "new") == [job_id(1)]
    check_equal(written)


def test_an_error_that_comes_without_its_job_is_indexed(written):
    """As in a scan, whose pieces bring one kind after the other."""
    written.put(a_job(1))
    finish(written)
    written.put(JobError(job_id(1), 1, 1, "an error", "", NOW))
    finish(written)
    written.put(JobError(job_id(2), 1, 1, "an error", "", NOW))
    finish(written)
    written.put(a_job(2))
    finish(written)

    assert with_grams(written, "err", "ror") == [job_id(1), job_id(2)]
    check_equal(written)


def test_a_slice_ends_when_its_time_is_up_and_says_so(written, monkeypatch):
    monkeypatch.setattr(indexing, "CHUNK", 10)
    written.put(*[a_job(number) for number in range(25)])

    assert [written.writer.index(0) for _ in range(3)] == [True, True, False]
    assert documents(written) == 25
    check_equal(written)


def test_a_number_that_is_given_again_is_indexed_again(written):
    written.put(a_job(1, payload=b'{"a":"old"}'), a_job(2, payload=b'{"a":"old"}'))
    finish(written)
    written.delete(job_id(2))
    written.put(a_job(3, payload=b'{"a":"new"}'))
    assert rows(written, "SELECT seq FROM jobs WHERE id = ?", job_id(3)) == [(2,)]  # that of job 2

    finish(written)

    assert with_grams(written, "new") == [job_id(3)]


def test_the_same_in_one_turn_and_after_a_stretch_was_cleared(written):
    written.put(a_job(1), a_job(2, payload=b'{"a":"old"}'))
    finish(written)
    everything = to_rows(0, [])
    written.writer.write([ShardWrite(shard=0, rows=everything, stretch=to_stretch(b"", b""))])
    written.put(a_job(2, payload=b'{"a":"new"}'))
    finish(written)

    assert with_grams(written, "new") == [job_id(2)]
    assert rows(written, "SELECT count(*) FROM jobs") == [(1,)]


def test_a_crash_between_writing_and_indexing_loses_nothing(written, monkeypatch):
    monkeypatch.setattr(indexing, "CHUNK", 10)
    written.put(*[a_job(number, payload=b'{"a":"abcd"}') for number in range(25)])
    written.writer.index(0)

    def crash(self, jobs):
        original(self, jobs)
        raise sqlite3.OperationalError("power")

    original = indexing.Indexing._refresh
    with monkeypatch.context() as broken:
        broken.setattr(indexing.Indexing, "_refresh", crash)
        with pytest.raises(sqlite3.OperationalError):
            written.writer.index(0)
    written.writer.close()  # without a farewell, as killed
    written.writer = MirrorDb(written.path)

    assert documents(written) == 10
    finish(written)
    assert len(with_grams(written, "abc")) == 25
    check_equal(written)


def test_a_rebuilt_file_is_indexed_anew(written):
    written.put(a_job(1, payload=b'{"a":"old"}'))
    finish(written)
    written.swap()
    written.put(a_job(1, payload=b'{"a":"new"}'))
    finish(written)

    assert (with_grams(written, "old"), with_grams(written, "new")) == ([], [job_id(1)])
    check_equal(written)


def deleted(written):
    return rows(written, "SELECT job_id, shard FROM deleted_jobs ORDER BY seq")


def test_a_deleted_job_s_document_is_removed(written):
    written.put(*[a_job(number, payload=b'{"a":"old"}', tags=b'{"t":"x"}') for number in range(5)])
    finish(written)

    written.delete(job_id(1), job_id(3))
    assert deleted(written) == [(job_id(1), 0), (job_id(3), 0)]
    finish(written)

    assert with_grams(written, "old") == [job_id(0), job_id(2), job_id(4)]
    assert rows(written, "SELECT count(*) FROM job_tags") == [(3,)]
    assert deleted(written) == []
    check_equal(written)


def test_a_job_deleted_before_it_was_indexed_leaves_nothing(written):
    written.put(a_job(1), a_job(2))
    written.delete(job_id(1))
    finish(written)

    assert deleted(written) == []
    check_equal(written)


def test_a_job_deleted_and_created_again_keeps_one_document(written):
    written.put(a_job(1, payload=b'{"a":"old"}'))
    finish(written)
    written.delete(job_id(1))
    written.put(a_job(1, payload=b'{"a":"new"}'))
    finish(written)

    assert (with_grams(written, "old"), with_grams(written, "new")) == ([], [job_id(1)])
    check_equal(written)


def test_a_job_deleted_twice_is_removed_once(written):
    written.put(a_job(1, payload=b'{"a":"old"}'), a_job(2, payload=b'{"a":"old"}'))
    finish(written)
    written.delete(job_id(1))
    written.delete(job_id(1))
    finish(written)

    assert with_grams(written, "old") == [job_id(2)]
    check_equal(written)


def test_a_job_that_moved_loses_the_document_of_the_shard_that_it_left(written):
    written.put(a_job(1, payload=b'{"a":"old"}'))
    finish(written)
    written.put(a_job(1, payload=b'{"a":"new"}'), shard=1)
    written.delete(job_id(1))
    finish(written)

    assert rows(written, "SELECT job_id, shard FROM documents") == [(job_id(1), 1)]
    check_equal(written)


def test_jobs_that_a_scan_does_not_find_lose_their_documents(written):
    written.put(*[a_job(number, payload=b'{"a":"old"}') for number in range(4)])
    written.put(a_job(1, payload=b'{"a":"old"}'), shard=1)
    finish(written)

    kept = to_rows(0, [(keys.job(job_id(2)), encode(a_job(2, payload=b'{"a":"new"}')))])
    written.writer.write([ShardWrite(shard=0, rows=kept, stretch=to_stretch(b"", b""))])
    assert deleted(written) == [(job_id(number), 0) for number in (0, 1, 3)]
    finish(written)

    assert rows(written, "SELECT job_id, shard FROM documents ORDER BY shard") == [(job_id(2), 0), (job_id(1), 1)]
    check_equal(written)


def test_a_crash_before_deletions_are_indexed_loses_none(written):
    written.put(*[a_job(number, payload=b'{"a":"old"}') for number in range(3)])
    finish(written)
    written.delete(job_id(1))
    written.writer.close()  # without a farewell, as killed
    written.writer = MirrorDb(written.path)

    finish(written)

    assert with_grams(written, "old") == [job_id(0), job_id(2)]
    check_equal(written)


def test_deletions_are_taken_in_slices_too(written, monkeypatch):
    monkeypatch.setattr(indexing, "CHUNK", 10)
    written.put(*[a_job(number) for number in range(40)])
    finish(written)
    written.delete(*[job_id(number) for number in range(25)])

    assert [written.writer.index(0) for _ in range(3)] == [True, True, False]
    check_equal(written)


def test_a_deletion_takes_as_many_steps_however_many_jobs_are_stored(written):
    def steps_of_a_deletion(number):
        count = 0

        def step():
            nonlocal count
            count += 1

        written.delete(job_id(number))
        written.writer._connection.set_progress_handler(step, 1)  # at each instruction of SQLite's machine
        written.writer.index(1_000)
        written.writer._connection.set_progress_handler(None, 0)
        return count

    written.put(*[a_job(number) for number in range(20)])
    finish(written)
    beside_few = steps_of_a_deletion(3)
    written.put(*[a_job(number) for number in range(20, 2_000)])
    finish(written)

    assert steps_of_a_deletion(1_000) < beside_few * 1.5


def test_the_same_job_on_two_shards_has_two_documents(written):
    written.put(a_job(1, payload=b'{"a":"old"}'))
    written.put(a_job(1, payload=b'{"a":"old"}'), shard=1)
    finish(written)

    assert rows(written, "SELECT job_id, shard FROM documents ORDER BY shard") == [(job_id(1), 0), (job_id(1), 1)]
    check_equal(written)


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (r'{"a":"caf\u00e9"}', '{"a":"café"}'),
        (r'{"a":"\ud83d\ude00"}', '{"a":"😀"}'),
        (r'{"a":"\ud83d"}', '{"a":"\ufffd"}'),
        (r'{"a":"x\\u00e9"}', r'{"a":"x\u00e9"}'),
        (r'{"a":"one\ntwo\/three"}', '{"a":"one\ntwo/three"}'),
        (r'{"a":"nul\u0000nul"}', '{"a":"nul nul"}'),
    ],
)
def test_a_document_holds_what_was_escaped_as_it_was_meant(payload, text):
    document, is_partial = text_index.document(payload, None, None, None)

    assert document == f"{payload}\n\n{text}"
    assert not is_partial
