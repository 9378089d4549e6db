import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corvo.model.fingerprint import LINE_CHARS_MAX, fingerprint, simplify

# Full of what patterns look for, so that neighbours meet.
awkward = st.text(st.sampled_from("'\"`“”<>ab:1 2x-.0[]\n_é"), max_size=60)
texts = st.one_of(st.text(max_size=200), awkward)


@pytest.mark.parametrize(
    ("error", "simple"),
    [
        ("", ""),
        ("boom", "boom"),
        ("timeout after 30s", "timeout after <number>s"),
        ("timeout after 30.5 s", "timeout after <number> s"),
        ("at 12:30:59 it stopped", "at <number> it stopped"),
        ("HTTP 503 from worker7", "HTTP <number> from worker<number>"),
        ("KeyError: 'user-17'", "KeyError: <text>"),
        ('no such file: "/tmp/a b"', "no such file: <text>"),
        ("can't open the user's file", "can't open the user's file"),
        ("can't open 'it'", "can't open <text>"),
        ("no table `t1`", "no table <text>"),
        ("object at 0x7f3a9c0", "object at <hex>"),
        ("commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "commit <hex>"),
        ("trace 4bf92f3577b34da6", "trace <hex>"),
        ("deadbeef and facade", "deadbeef and facade"),
        ("row 6ba7b810-9dad-11d1-80b4-00c04fd430c8 is locked", "row <uuid> is locked"),
        ("dial tcp 10.1.2.3:5432: refused", "dial tcp <address>: refused"),
        ("dial tcp [2001:db8::8a2e:370:7334]:443: refused", "dial tcp <address>: refused"),
        ("job s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 is gone", "job <id> is gone"),
        ("version 1.2.3.4.5 is too new", "version <number> is too new"),
        ("  many\t spaces ", "many spaces"),
        ("\n\n first\nsecond", "first"),
        ("naïve ünïcödé ٣", "naïve ünïcödé ٣"),
    ],
)
def test_what_varies_is_left_out(error: str, simple: str) -> None:
    assert simplify(error) == simple


def test_errors_that_differ_in_what_varies_have_one_fingerprint() -> None:
    one, other = "user 17 not found in 'mail'\nat line 3", "user 4 not found in 'news'\nat line 9"

    assert fingerprint(one) == fingerprint(other)
    assert re.fullmatch("[0-9a-f]{16}", fingerprint(one))
    assert fingerprint("user not found") != fingerprint("queue not found")


@given(texts)
@example("'x \"y'z\" w'")
@example("x1deadbeef-dead-beef-dead-beefdeadbeef")
@example("\ud800")
@example("1 " * LINE_CHARS_MAX)
@example("'" + "1" * LINE_CHARS_MAX + "'")
def test_what_is_simple_stays_so_and_nothing_fails(error: str) -> None:
    simple = simplify(error)

    assert simplify(simple) == simple
    assert fingerprint(simple) == fingerprint(error)
    assert len(simple) <= LINE_CHARS_MAX
    assert not re.search("[0-9]", simple)


@pytest.mark.parametrize(
    "part",
    ["'", '"', "`", "a'", "'a", "1", "1.", "1:", "f", "f:", "0x", "a1", "deadbee1-", "[1:", "“", " ", "<", "_1"],
)
def test_a_line_full_of_beginnings_is_simplified(part: str) -> None:
    simple = simplify(part * 10_000)

    assert simplify(simple) == simple
