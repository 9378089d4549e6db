"""HTTP servers that could run the gateway, one module each with a `serve` as in `gateway/http/servers`.

`serving` runs a real gateway with one of them, `malformed` sends it the catalogue of malformed requests, `http2` runs
the tests of HTTP/2 against it.
"""
