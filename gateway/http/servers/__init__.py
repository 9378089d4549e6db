"""The HTTP servers in front of the gateway, one module each.

Both have `serve(app, listener, graceful_s, stop, certificate)`: it serves the socket until `stop` is set, then finishes
open requests for at most `graceful_s`. With a certificate it speaks TLS, and HTTP/2 beside HTTP/1.1.
`MUST_RESTART_TO_RENEW` says whether a new certificate needs a new process. The faults of a server are corrected here or
in `gateway/http/messages.py`; `test_hypercorn.py`, `test_granian.py` and `test_tls.py` in `tests/gateway/http` check
that both keep the same promises.
"""
