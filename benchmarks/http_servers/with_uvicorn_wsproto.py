"""As `with_uvicorn`, with wsproto for the frames."""

from functools import partial

from benchmarks.http_servers import with_uvicorn

MUST_RESTART_TO_RENEW = True
serve = partial(with_uvicorn.serve, web_sockets="wsproto")
