import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.runtime.read_db import PostgresAddress, address_of, parse_read_db, without_password
from corvo.runtime.settings import Settings


def test_nothing_means_a_file():
    assert parse_read_db("") is None


@pytest.mark.parametrize(
    ("text", "url", "schema"),
    [
        ("postgresql://me@host/db", "postgresql://me@host/db", "corvo"),
        ("postgres://host:5433/db", "postgres://host:5433/db", "corvo"),
        ("postgresql://host/db?schema=jobs", "postgresql://host/db", "jobs"),
        ("postgresql://host/db?sslmode=require&schema=a_1", "postgresql://host/db?sslmode=require", "a_1"),
        ("postgresql:///db?host=/run/pg", "postgresql:///db?host=%2Frun%2Fpg", "corvo"),
    ],
)
def test_an_address_is_libpq_s_and_a_schema(text, url, schema):
    assert parse_read_db(text) == PostgresAddress(url, schema)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mysql://host/db", "expected postgresql://"),
        ("read.db", "expected postgresql://"),
        ("postgresql://host", "names no database"),
        ("postgresql://host/", "names no database"),
        ("postgresql://host/db?schema=", "schema is ''"),
        ("postgresql://host/db?schema=Jobs", "schema is 'Jobs'"),
        ("postgresql://host/db?schema=public", "not public"),
        ("postgresql://host/db?schema=pg_x", "a digit or pg_"),
        ("postgresql://host/db?schema=1a", "a digit or pg_"),
        ("postgresql://host/db?schema=a;drop", "schema is 'a;drop'"),
        (f"postgresql://host/db?schema={'a' * 41}", "1 to 40"),
        ("postgresql://[::1/db", "Invalid IPv6"),
    ],
)
def test_what_is_none_is_refused_in_a_sentence(text, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_read_db(text)


@pytest.mark.parametrize(
    ("settings", "schema"),
    [
        ({}, "corvo"),
        ({"node_id": "node-7"}, "corvo"),
        ({"node_id": "Node-7.x", "join": "10.0.0.1:9400"}, "corvo_node_7_x"),
        ({"node_id": "n" * 63, "join": "10.0.0.1:9400"}, "corvo_" + "n" * 34),
    ],
)
def test_each_node_of_a_cluster_has_a_schema_of_its_own(settings, schema):
    address = address_of(Settings(read_db="postgresql://host/db", **settings))

    assert address is not None
    assert address.schema == schema
    assert parse_read_db(f"postgresql://host/db?schema={schema}") is not None, "one could have named it oneself"


@given(st.text("ab:@/?#[]%!$&'()*+,;= \t", max_size=20).filter(lambda text: "/" not in text and "?" not in text))
def test_no_password_is_shown(rest):
    secret = f"S3CRET{rest}"

    for url in (f"postgresql://me:{secret}@host/db", f"postgresql://host/db?password={secret.replace('&', '')}"):
        assert "S3CRET" not in without_password(url)


@pytest.mark.parametrize("url", ["postgresql://me@host:5432/db", "postgresql:///db", "data", ":8080", ""])
def test_what_has_no_password_is_shown_as_it_is(url):
    assert without_password(url) == url
