"""Updates documents and their indexes after the jobs, a slice at a time (see `text_index.py`).

A slice reads the jobs after the watermark by `seq`, writes new and changed documents, and moves the watermark, all in
one transaction. So a crash never leaves the index half updated. Errors have their own watermark, because a scan may
bring them before or after their jobs.

The transaction that deletes a job also records it in `deleted_jobs`. A slice removes the documents of these jobs, and
then the records. So the cost depends on the jobs that changed, not on those stored.
"""

import sqlite3
import time
from typing import Any

from gateway.readdb.text_index import document, marker

CHUNK = 100  # documents between two deadline checks

_PROGRESS = "SELECT jobs_seq, error_id FROM index_progress"
_PUT_PROGRESS = "UPDATE index_progress SET jobs_seq = ?, error_id = ?"
_PARTS = """
    j.id, j.shard, j.payload, j.tags, j.result,
    (SELECT group_concat(error, char(10)) FROM job_errors e WHERE e.job_id = j.id AND e.shard = j.shard),
    d.doc, d.text, d.tags, d.is_partial, j.namespace
"""
_DOCUMENT = "LEFT JOIN documents d ON d.job_id = j.id AND d.shard = j.shard"
_JOBS_BEHIND = f"SELECT {_PARTS}, j.seq FROM jobs j {_DOCUMENT} WHERE j.seq > ? ORDER BY j.seq LIMIT ?"
_ERRORS_BEHIND = "SELECT count(*), max(id) FROM (SELECT id FROM job_errors WHERE id > ? ORDER BY id LIMIT ?)"
_JOBS_OF_ERRORS = f"""
    SELECT {_PARTS}, 0 FROM (SELECT DISTINCT job_id, shard FROM job_errors WHERE id > ? AND id <= ?) late
    JOIN jobs j ON j.id = late.job_id AND j.shard = late.shard {_DOCUMENT}
"""
_ADD = "INSERT INTO documents (job_id, shard, namespace, text, tags, is_partial) VALUES (?, ?, ?, ?, ?, ?)"
_CHANGE = "UPDATE documents SET text = ?, tags = ?, is_partial = ? WHERE doc = ?"
_REMOVE = "DELETE FROM documents WHERE doc = ?"
_ENTER = ("INSERT INTO jobs_grams (rowid, text) VALUES (?, ?)", "INSERT INTO jobs_fts (rowid, text) VALUES (?, ?)")
# In the order of the documents: FTS5 flushes its buffer whenever a rowid is smaller than the one before.
_STRIKE = (
    "INSERT INTO jobs_grams (jobs_grams, rowid, text) VALUES ('delete', ?, ?)",
    "INSERT INTO jobs_fts (jobs_fts, rowid, text) VALUES ('delete', ?, ?)",
)
_TAGS = """
    SELECT key, value FROM json_each(CASE WHEN json_valid(?1) THEN ?1 ELSE '{}' END)
    WHERE type IN ('text', 'integer', 'real', 'true', 'false')
"""
# One row per statement: a statement that writes several makes FTS5 flush its buffer.
_ENTER_TAG = "INSERT OR IGNORE INTO job_tags (namespace, key, value, doc) VALUES (?, ?, ?, ?)"
_STRIKE_TAG = "DELETE FROM job_tags WHERE namespace = ? AND key = ? AND value = ? AND doc = ?"
# Oldest first. A job that was deleted and created again under the same id keeps its document.
_DELETED = """
    SELECT deleted.seq, d.doc, d.text, d.tags, d.namespace
    FROM (SELECT seq, job_id, shard FROM deleted_jobs ORDER BY seq LIMIT ?) deleted
    LEFT JOIN documents d ON d.job_id = deleted.job_id AND d.shard = deleted.shard
    AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = deleted.job_id AND j.shard = deleted.shard)
    ORDER BY deleted.seq
"""
_FORGET_DELETED = "DELETE FROM deleted_jobs WHERE seq <= ?"


class Indexing:
    """Works on the mirror's connection, inside the caller's transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def slice(self, budget_ms: float) -> bool:
        """Works for about `budget_ms`. True if work is left."""
        end = time.monotonic() + budget_ms / 1000
        jobs_seq, error_id = self._connection.execute(_PROGRESS).fetchone()
        is_behind = True
        while is_behind:
            jobs = self._connection.execute(_JOBS_BEHIND, (jobs_seq, CHUNK)).fetchall()
            errors, last_error = self._connection.execute(_ERRORS_BEHIND, (error_id, CHUNK)).fetchone()
            self._refresh(jobs)
            if jobs:
                jobs_seq = jobs[-1][-1]
            if errors:
                self._refresh(self._connection.execute(_JOBS_OF_ERRORS, (error_id, last_error)).fetchall())
                error_id = last_error
            deleted = self._remove_deleted()
            is_behind = CHUNK in (len(jobs), errors, deleted)
            if time.monotonic() >= end:
                break
        self._connection.execute(_PUT_PROGRESS, (jobs_seq, error_id))
        return is_behind

    def _refresh(self, jobs: list[Any]) -> None:
        """Writes the documents of these jobs that are missing or outdated."""
        entered: list[tuple[int, str]] = []
        struck: list[tuple[int, str]] = []
        tags_entered: list[tuple[str, int, str]] = []
        tags_struck: list[tuple[str, int, str]] = []
        for job_id, shard, payload, tags, result, errors, doc, old_text, old_tags, was_partial, namespace, _ in jobs:
            text, is_partial = document(payload, tags, result, errors)
            text = f"{marker(namespace)}\n{text}"
            if (text, tags, is_partial) == (old_text, old_tags, was_partial):
                continue
            if doc is None:
                doc = self._connection.execute(_ADD, (job_id, shard, namespace, text, tags, is_partial)).lastrowid
            else:
                self._connection.execute(_CHANGE, (text, tags, is_partial, doc))
                struck.append((doc, old_text))
            entered.append((doc, text))
            if tags != old_tags:
                if old_tags is not None:
                    tags_struck.append((namespace, doc, old_tags))
                if tags is not None:
                    tags_entered.append((namespace, doc, tags))
        self._strike(struck, tags_struck)
        for statement in _ENTER:
            self._connection.executemany(statement, sorted(entered))
        self._connection.executemany(_ENTER_TAG, self._tag_rows(tags_entered))

    def _strike(self, texts: list[tuple[int, str]], tags: list[tuple[str, int, str]]) -> None:
        for statement in _STRIKE:
            self._connection.executemany(statement, sorted(texts))
        self._connection.executemany(_STRIKE_TAG, self._tag_rows(tags))

    def _tag_rows(self, tags: list[tuple[str, int, str]]) -> list[tuple[str, str, Any, int]]:
        """Rows of (namespace, key, value, document), with the values as SQLite reads them."""
        return [
            (namespace, key, value, doc)
            for namespace, doc, json in tags
            for key, value in self._connection.execute(_TAGS, (json,))
        ]

    def _remove_deleted(self) -> int:
        """Removes the documents of a chunk of deleted jobs. Returns the number of deletions handled."""
        deleted = self._connection.execute(_DELETED, (CHUNK,)).fetchall()
        if not deleted:
            return 0
        # Keyed by document: a deletion may be recorded twice, and removing an entry twice would damage the index.
        gone = {doc: (text, tags, namespace) for _, doc, text, tags, namespace in deleted if doc is not None}
        self._strike(
            [(doc, text) for doc, (text, _, _) in gone.items()],
            [(namespace, doc, tags) for doc, (_, tags, namespace) in gone.items() if tags is not None],
        )
        self._connection.executemany(_REMOVE, [(doc,) for doc in gone])
        self._connection.execute(_FORGET_DELETED, (deleted[-1][0],))
        return len(deleted)
