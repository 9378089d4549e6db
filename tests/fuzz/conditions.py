"""Expressions of `payload_jq`. A text is refused with a sentence, or it is a condition that SQLite runs without an
error and answers as our own evaluation does."""

from corvo.model.errors import Refusal
from corvo.model.limits import JQ_BYTES_MAX
from gateway.search.jq import literals
from gateway.search.jq.evaluation import matches
from tests.gateway.search.jq.database import Payloads

TEXTS = [
    "{}",
    "null",
    "[1,[2,{}],null]",
    '"x"',
    "1.5",
    '{"a":1,"b":{"c":[1,2,{"d":true}]},"e":"text","f":null,"g.h":"é"}',
    '{"a":-0.0,"b":[],"e":"","f":false,"\'":"q","a b":1e300}',
    '{"a":"1","b":"{}","e":["text"],"f":9007199254740993}',
]
TABLE = Payloads(TEXTS)


def beginnings() -> list[bytes]:
    texts = [
        ".a",
        ".a == 1",
        ".b.c[2].d and not (.e == null)",
        '.e | contains("ex") or (.e | startswith("t"))',
        '.e | test("^t.*t$")',
        '.["g.h"] != "é" | not',
        ".b.c | length > 2",
        '.f | type == "null"',
        '.a in [1, "x", null, 2.5e3]',
        '. | has("a")',
        '"\\u00e9\\ud83d\\ude00" == .e',
        "(" * 40 + ".a" + ")" * 40,
        ". | ..",
        "input",
        "env.PATH",
        "$__loc__",
        "limit(1e9; repeat(0))",
        '.e | test("(a+)+$")',
    ]
    return [text.encode() for text in texts]


def play(data: bytes) -> None:
    if len(data) > JQ_BYTES_MAX:
        return
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return  # a body that is not UTF-8 is refused before
    try:
        found = TABLE.matching(text)
    except Refusal as refusal:
        assert refusal.code == "VALIDATION_ERROR" and refusal.message, refusal
        return
    assert found == [number for number, payload in enumerate(TEXTS) if matches(payload, text)], text
    needed = literals(text)
    for number in found:
        assert all(one in TEXTS[number] for one in needed), (text, number)
