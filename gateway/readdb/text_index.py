"""The tables of text search: documents, the indexes over them, and the indexing progress.

A job has one document: its payload, tags, result and error messages, concatenated, behind the marker of its namespace
(`marker`). The indexes cannot select a namespace otherwise, and a search for a rare tenant must not read the entries
of a large one. Whoever writes the marker of another namespace into a payload gains nothing: each search compares the
namespace of the rows. The document has its own number, because a job's `seq` changes with every write while its texts
mostly do not. The indexes are:

    jobs_grams   trigrams, case-sensitive: for substrings
    jobs_fts     words, without case and accents: for full-text search
    job_tags     (namespace, key, value) of each tag

None of them is written with the jobs. `indexing.py` updates them later, by `jobs.seq` and `job_errors.id`, when the
mirror has time; `index_progress` holds its position. A search checks all later jobs itself
(`gateway/search/documents.py`), so an index that is behind makes it slow, never wrong.

The document keeps the text as indexed, because FTS5 can remove an entry only if it gets the original text. The indexes
keep no copy of it (`content=''`), and positions only where queries need them.
"""

import re
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import sqlalchemy as sa

from corvo.model.sealed_text import MARK_TEXT
from gateway.readdb.seed_tables import integer, metadata, tenant, text, text_or_null

SQLITE_ONLY = {"sqlite_only": True}  # PostgreSQL has none of these tables

# Each part of a document is indexed up to this length.
PART_CHARS_MAX = 16_384

documents = sa.Table(
    "documents",
    metadata,
    sa.Column("doc", sa.Integer, primary_key=True),
    text("job_id"),
    integer("shard"),
    tenant(),
    text("text"),
    text_or_null("tags"),
    integer("is_partial"),  # 1: the indexes do not hold all of it, so every search checks it
    sa.UniqueConstraint("job_id", "shard"),
    info=SQLITE_ONLY,
)
PARTIAL = "is_partial = 1"
PARTIAL_DOCUMENTS = sa.Index("idx_documents_partial", documents.c.namespace, sqlite_where=sa.text(PARTIAL))

job_tags = sa.Table(
    "job_tags",
    metadata,
    text("namespace", primary_key=True),
    text("key", primary_key=True),
    sa.Column("value", sa.BLOB, primary_key=True),  # a BLOB column has no affinity: SQLite keeps each value's type
    sa.Column("doc", sa.Integer, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
    info=SQLITE_ONLY,
)

# Jobs whose documents are to be removed. The row is written in the transaction that deletes the job.
deleted_jobs = sa.Table(
    "deleted_jobs",
    metadata,
    sa.Column("seq", sa.Integer, primary_key=True),
    text("job_id"),
    integer("shard"),
    info=SQLITE_ONLY,
)

# One row.
index_progress = sa.Table(
    "index_progress",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    integer("jobs_seq"),  # every job up to this `jobs.seq` is indexed
    integer("error_id"),  # and every error up to this `job_errors.id`
    info=SQLITE_ONLY,
)

WORDS_TOKENIZER = "unicode61 remove_diacritics 2"
VIRTUAL_TABLES = (
    "CREATE VIRTUAL TABLE jobs_grams USING fts5"
    "(text, content='', columnsize=0, detail=none, tokenize='trigram case_sensitive 1')",
    f"CREATE VIRTUAL TABLE jobs_fts USING fts5(text, content='', columnsize=0, tokenize='{WORDS_TOKENIZER}')",
)


class InMemory(NamedTuple):
    """A word index like `jobs_fts`, for jobs that are not indexed yet."""

    make: tuple[str, ...]
    enter: str
    find: str


IN_MEMORY = InMemory(
    (VIRTUAL_TABLES[1],),
    "INSERT INTO jobs_fts (rowid, text) VALUES (?, ?)",
    "SELECT rowid FROM jobs_fts WHERE jobs_fts MATCH ?",
)

# Characters for private use: of no language, and yet both tokenizers take them for letters.
_PRIVATE, _PRIVATES = 0xE000, 0xF8FF - 0xE000
_MARK = 3  # characters: a word for one index, a trigram for the other

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SHORT_ESCAPES = {"b": " ", "f": " ", "n": "\n", "r": "\n", "t": "\t"}


@lru_cache(maxsize=4096)
def marker(namespace: str) -> str:
    """The word with which every document of the namespace begins."""
    number = int.from_bytes(blake2b(namespace.encode(), digest_size=8).digest())
    return "".join(chr(_PRIVATE + number // _PRIVATES**place % _PRIVATES) for place in range(_MARK))


def document(payload: str, tags: str | None, result: str | None, errors: str | None) -> tuple[str, bool]:
    """The stored parts, then the unescaped text of those that have escapes. Also whether the indexes lack some of it:
    because a text is too long, or because tags have escapes, which SQLite misreads."""
    documents = [part for part in (payload, tags, result) if part and MARK_TEXT not in part]  # no ciphertext
    json = "\n".join(part[:PART_CHARS_MAX] for part in documents)
    parts = [json, (errors or "")[:PART_CHARS_MAX]]
    if "\\" in json:
        parts.append(_unescaped(json))
    is_cut = any(len(part) > PART_CHARS_MAX for part in (*documents, errors or ""))
    text = "\n".join(parts).replace("\0", " ")  # the tokenizers stop at a NUL
    return text, is_cut or (tags is not None and "\\" in tags)


def _unescaped(json: str) -> str:
    plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _short(found[2]), json)
    # A surrogate pair becomes one character, and a lone surrogate the replacement character.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _short(letter: str) -> str:
    return _SHORT_ESCAPES.get(letter, letter)
