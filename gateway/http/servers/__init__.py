"""The programs that speak HTTP in front of the gateway, one module each.

Both have `serve(app, listener, graceful_s, stop, certificate)`: it serves what arrives at the socket until `stop` is
set, then finishes what is under way, for at most so long; with a certificate it speaks TLS, and HTTP/2 beside HTTP/1.1.
`MUST_RESTART_TO_RENEW` says whether a new certificate needs a new process. What a program lets through or lacks is made
good here or in `gateway/http/messages.py`; `test_hypercorn.py`, `test_granian.py` and `test_tls.py` in
`tests/gateway/http` hold both to the same promises.
"""
