"""The programs that speak HTTP in front of the gateway, one module each.

Both have `serve(app, listener, graceful_s, stop)`: it serves what arrives at the socket until `stop` is set, then
finishes what is under way, for at most so long. What a program lets through or lacks is made good here or in
`gateway/http.py`; `tests/gateway/test_hypercorn.py` and `test_granian.py` hold both to the same promises.
"""
