"""Documents and their indexes brought up to date, a slice at a time, behind the jobs (see `fulltext.py`).

A slice takes the jobs behind the watermark in the order of their numbers, writes the documents that are new or read
differently, and moves the watermark, in one transaction: a crash leaves the index where it was, never half-way. Errors
have a watermark of their own, because a scan may bring them before or after their jobs.

Jobs that are gone leave their documents behind. No search shows them, and when there are enough, a sweep goes over all
documents, slice by slice too, and removes those without a job.
"""

import sqlite3
import time
from typing import Any

from gateway.readdb.text_index import document

CHUNK = 100  # documents between two looks at the clock
SWEPT_CHUNK = 2_000  # documents that a sweep looks at; few of them are gone
GARBAGE_MIN, GARBAGE_SHARE = 1_000, 0.1  # of documents without a job, before they are swept
GARBAGE_LOOK_S = 10.0

_PROGRESS = "SELECT jobs_seq, error_id, documents FROM index_progress"
_PUT_PROGRESS = "UPDATE index_progress SET jobs_seq = ?, error_id = ?, documents = ?"
_PARTS = """
    j.id, j.shard, j.payload, j.tags, j.result,
    (SELECT group_concat(error, char(10)) FROM job_errors e WHERE e.job_id = j.id AND e.shard = j.shard),
    d.doc, d.text, d.tags, d.is_partial
"""
_DOCUMENT = "LEFT JOIN documents d ON d.job_id = j.id AND d.shard = j.shard"
_JOBS_BEHIND = f"SELECT {_PARTS}, j.seq FROM jobs j {_DOCUMENT} WHERE j.seq > ? ORDER BY j.seq LIMIT ?"
_ERRORS_BEHIND = "SELECT count(*), max(id) FROM (SELECT id FROM job_errors WHERE id > ? ORDER BY id LIMIT ?)"
_JOBS_OF_ERRORS = f"""
    SELECT {_PARTS}, 0 FROM (SELECT DISTINCT job_id, shard FROM job_errors WHERE id > ? AND id <= ?) late
    JOIN jobs j ON j.id = late.job_id AND j.shard = late.shard {_DOCUMENT}
"""
_ADD = "INSERT INTO documents (job_id, shard, text, tags, is_partial) VALUES (?, ?, ?, ?, ?)"
_CHANGE = "UPDATE documents SET text = ?, tags = ?, is_partial = ? WHERE doc = ?"
_REMOVE = "DELETE FROM documents WHERE doc = ?"
_ENTER = ("INSERT INTO jobs_grams (rowid, text) VALUES (?, ?)", "INSERT INTO jobs_fts (rowid, text) VALUES (?, ?)")
_STRIKE = (
    "INSERT INTO jobs_grams (jobs_grams, rowid, text) VALUES ('delete', ?, ?)",
    "INSERT INTO jobs_fts (jobs_fts, rowid, text) VALUES ('delete', ?, ?)",
)
_OF_TAGS = "json_each(CASE WHEN json_valid(?2) THEN ?2 ELSE '{}' END)"
_ENTER_TAGS = f"""
    INSERT OR IGNORE INTO job_tags (key, value, doc)
    SELECT key, value, ?1 FROM {_OF_TAGS} WHERE type IN ('text', 'integer', 'real', 'true', 'false')
"""
_STRIKE_TAGS = f"DELETE FROM job_tags WHERE doc = ?1 AND (key, value) IN (SELECT key, value FROM {_OF_TAGS})"
_JOBS = (
    "SELECT coalesce(sum(pending + active + held + completed + dead + scheduled + retrying + cancelled), 0) FROM queues"
)
_LAST_OF_SWEPT = "SELECT count(*), max(doc) FROM (SELECT doc FROM documents WHERE doc > ? ORDER BY doc LIMIT ?)"
_GONE = """
    SELECT doc, text, tags FROM documents d WHERE doc > ? AND doc <= ?
    AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = d.job_id AND j.shard = d.shard)
"""


class Indexing:
    """Works on the mirror's connection, inside a transaction that the caller has begun."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._swept_upto: int | None = None  # None: no sweep is under way
        self._look_at = 0.0
        self._garbage_left = 0  # by the last sweep: what the counts say is gone, and is not

    def slice(self, budget_ms: float) -> bool:
        """Work for about so long. Whether more is left to do."""
        end = time.monotonic() + budget_ms / 1000
        jobs_seq, error_id, count = self._connection.execute(_PROGRESS).fetchone()
        is_behind = True
        while is_behind:
            jobs = self._connection.execute(_JOBS_BEHIND, (jobs_seq, CHUNK)).fetchall()
            errors, last_error = self._connection.execute(_ERRORS_BEHIND, (error_id, CHUNK)).fetchone()
            count += self._refresh(jobs)
            if jobs:
                jobs_seq = jobs[-1][-1]
            if errors:
                count += self._refresh(self._connection.execute(_JOBS_OF_ERRORS, (error_id, last_error)).fetchall())
                error_id = last_error
            is_behind = len(jobs) == CHUNK or errors == CHUNK
            if time.monotonic() >= end:
                break
        if not is_behind:
            count -= self._sweep(end, count)
        self._connection.execute(_PUT_PROGRESS, (jobs_seq, error_id, count))
        return is_behind or self._swept_upto is not None

    def _refresh(self, jobs: list[Any]) -> int:
        """Documents of these jobs, where they are not as they should be. How many are new."""
        entered: list[tuple[int, str]] = []
        struck: list[tuple[int, str]] = []
        tags_entered: list[tuple[int, str]] = []
        tags_struck: list[tuple[int, str]] = []
        new = 0
        for job_id, shard, payload, tags, result, errors, doc, old_text, old_tags, was_partial, _ in jobs:
            text, is_partial = document(payload, tags, result, errors)
            if (text, tags, is_partial) == (old_text, old_tags, was_partial):
                continue
            if doc is None:
                doc = self._connection.execute(_ADD, (job_id, shard, text, tags, is_partial)).lastrowid
                new += 1
            else:
                self._connection.execute(_CHANGE, (text, tags, is_partial, doc))
                struck.append((doc, old_text))
            entered.append((doc, text))
            if tags != old_tags:
                if old_tags is not None:
                    tags_struck.append((doc, old_tags))
                if tags is not None:
                    tags_entered.append((doc, tags))
        self._strike(struck, tags_struck)
        for statement in _ENTER:
            self._connection.executemany(statement, entered)
        self._connection.executemany(_ENTER_TAGS, tags_entered)
        return new

    def _strike(self, texts: list[tuple[int, str]], tags: list[tuple[int, str]]) -> None:
        for statement in _STRIKE:
            self._connection.executemany(statement, texts)
        self._connection.executemany(_STRIKE_TAGS, tags)

    # Sweeping

    def _sweep(self, end: float, documents: int) -> int:
        """How many documents were removed."""
        if self._swept_upto is None and not self._is_worth_it(documents):
            return 0
        removed = 0
        while time.monotonic() < end:
            looked_at, upto = self._connection.execute(_LAST_OF_SWEPT, (self._swept_upto or 0, SWEPT_CHUNK)).fetchone()
            if not looked_at:
                self._swept_upto = None
                self._garbage_left = max(0, documents - removed - self._jobs())
                break
            gone = self._connection.execute(_GONE, (self._swept_upto or 0, upto)).fetchall()
            self._strike(
                [(doc, text) for doc, text, _ in gone], [(doc, tags) for doc, _, tags in gone if tags is not None]
            )
            self._connection.executemany(_REMOVE, [(doc,) for doc, _, _ in gone])
            removed += len(gone)
            self._swept_upto = upto
        return removed

    def _is_worth_it(self, documents: int) -> bool:
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + GARBAGE_LOOK_S
        garbage = documents - self._jobs() - self._garbage_left
        if garbage <= max(GARBAGE_MIN, documents * GARBAGE_SHARE):
            return False
        self._swept_upto = 0
        return True

    def _jobs(self) -> int:
        """As the shards count them: nobody need count rows."""
        count: int = self._connection.execute(_JOBS).fetchone()[0]
        return count
