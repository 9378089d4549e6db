"""The catalogue of malformed requests, as bytes. The tests of each server and `python -m benchmarks.run --only
http_servers` send them; which status a server answers with is written beside each."""

from tests.gateway.served import INFO, chunked, enqueue, request

# Refused with this status, and the connection goes on.
KEPT: list[tuple[bytes, int]] = [
    (enqueue(b"{"), 400),
    (enqueue(b'{"queue": "|"}'), 400),
    (enqueue(b'{"queue": "mail", "payload": "\xff"}'), 400),
    (enqueue(b"[" * 100_000), 400),
    (request("GET", "/api/v1/nothing"), 404),
    (request("GET", "/nowhere"), 404),
    (request("GET", "/api/v1/jobs/x"), 404),
    (request("GET", "/api/v1/enqueue"), 405),
    (request("TRACE", "/api/v1/info"), 405),  # S18
    (request("BREW", "/api/v1/info"), 405),
    (request("POST", "/api/v1/enqueue", "Content-Length: 2", body=b"{}"), 415),
    (request("GET", "http://elsewhere.example/api/v1/info"), 400),  # S16
    (request("OPTIONS", "*"), 400),
    (request("GET", "/api/v1/jobs/%2e%2e%2f"), 400),  # S27
    (request("GET", "/api/v1/jobs/%00"), 400),
    (request("GET", "/api/v1/jobs/%ff"), 400),  # S28
    (request("GET", "/../../etc/passwd"), 404),  # S30
    (request("GET", "/api/v1/info").replace(b"HTTP/1.1", b"HTTP/9.9"), 505),  # S17
]

# Refused with this status, and the connection is closed: where the request ends is in doubt.
CLOSED: list[tuple[bytes, int]] = [
    (enqueue(b"", length=17_000_000), 413),  # S05: before a byte of the body came
    (enqueue(b'{"queue": "mail"}', "Content-Length: 4"), 400),  # S07
    (enqueue(b'{"queue": "mail"}', length="17, 4"), 400),
    (enqueue(b'{"queue": "mail"}', length="+17"), 400),
    (enqueue(b'{"queue": "mail"}', length="1" * 5_000), 400),
    (enqueue(b'{"queue": "mail"}', "Transfer-Encoding: chunked"), 400),  # S09
    (chunked(b"0\r\n\r\n", "Content-Length: 0"), 400),
    (enqueue().replace(b"Content-Length: 17", b"Transfer-Encoding: xchunked"), 501),  # S10
    (enqueue().replace(b"Content-Length: 17", b"Transfer-Encoding: chunked, identity"), 501),
    (enqueue().replace(b"Content-Length: 17", b"Transfer-Encoding: identity"), 501),
    (enqueue().replace(b"Content-Length: 17", b"Transfer-Encoding : chunked"), 400),
    (request("GET", "/api/v1/info", "X: a\0b"), 400),  # S13
    (request("GET", "/api/v1/info", "X: a\rb"), 400),
    (request("GET", "/api/v1/info", "X y: z"), 400),
    (request("GET", "/api/v1/info", "X: " + "a" * 20_000), 431),  # S14
    (request("GET", "/api/v1/info", *["X: y"] * 1_500), 431),
    (request("GET", "/" + "a" * 17_000), 414),  # S15
    (request("GET", "/api/v1/info?" + "a" * 17_000), 414),
    (request("GET", "/api/v1/info", host=""), 400),  # S17
    (request("GET", "/api/v1/info", "Host: other"), 400),
    (b"nonsense\r\n\r\n", 400),
    (b"GET\r\n\r\n", 400),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),  # TLS
]

# Bodies of requests whose head is good. They are refused with 400, or cut off.
BAD_CHUNKS: list[bytes] = [
    b'5\r\n{"que!!\r\n0\r\n\r\n',
    b"0x5\r\n",
    b"1" * 21 + b"\r\n",
    b"-1\r\n",
    b"g\r\n",
    b"5\r\nab\r\n"[:5] + b"\r\n\r\n\r\n\r\n",
]

# Each holds a whole request for the queue `hidden` in its body. It must never be served.
_HIDDEN = enqueue(b'{"queue": "hidden"}')
SMUGGLED: list[bytes] = [
    request("POST", "/api/v1/enqueue", "Content-Encoding: gzip", f"Content-Length: {len(_HIDDEN)}", body=_HIDDEN),
    request("TRACE", "/api/v1/enqueue", f"Content-Length: {len(_HIDDEN)}", body=_HIDDEN),
    request("GET", "/api/v1/info", f"Content-Length: {len(_HIDDEN)}", body=_HIDDEN),
    request("POST", "/api/v1/jobs/%00", f"Content-Length: {len(_HIDDEN)}", body=_HIDDEN),
    enqueue(_HIDDEN, "Transfer-Encoding: chunked"),
    chunked(b"0\r\n\r\n" + _HIDDEN, f"Content-Length: {len(_HIDDEN)}"),
]

# A lenient server reads each as one request; a strict one refuses it. Both are safe.
LENIENT: list[bytes] = [
    enqueue(length="17\r\nContent-Length: 17"),  # S08
    enqueue(length="17, 17"),
    INFO.replace(b"\r\n", b"\n"),  # S12
    request("GET", "/api/v1/info", "X: a\r\n b"),
]

# Bodies that are no JSON of ours: 400.
NOT_JSON: list[bytes] = [
    b"{",
    b'{"queue": "mail"',
    b'{"queue": "ma',
    b'{"queue": "mail"}}',
    b'{"queue": "mail"} x',
    b'{"queue": "mail"}\0',
    b'{"queue": "mail"}{"queue": "mail"}',
    b"\xef\xbb\xbf" + b'{"queue": "mail"}',
    '{"queue": "mail"}'.encode("utf-16"),
    '{"queue": "mail"}'.encode("utf-16-le"),
    '{"queue": "mail"}'.encode("utf-32"),
    b'{"queue": "\xff"}',
    b'{"queue": "mail", "payload": "\xff"}',
    b'{"queue": "mail", "payload": "\xc3"}',
    b'{"queue": "mail", "payload": "\xed\xa0\x80"}',
    b'{"queue": "mail", "payload": "\\ud800"}',
    b'{"queue": "mail", "payload": "\x01"}',
    b'{"queue": "mail", "payload": NaN}',
    b'{"queue": "mail", "payload": Infinity}',
    b'{"queue": "mail", "payload": -Infinity}',
    b'{"queue": "mail", "payload": 01}',
    b'{"queue": "mail", "payload": .5}',
    b'{"queue": "mail", "payload": 0x10}',
    b'{"queue": "mail", "payload": undefined}',
    b'{"queue": "mail", "payload": [1,]}',
    b'{"queue": "mail", "payload": {"a":1,}}',
    b"{'queue': 'mail'}",
    b"queue=mail",
    b"// x\n{}",
    b"\0",
    b" ",
]
