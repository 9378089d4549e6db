"""The certificate of a gateway: shown to every client that shakes hands, and taken up anew when its files change."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from corvo.runtime.certificate import BadCertificate, load_certificate

LOOK_S = 10.0  # between two looks at the files

log = structlog.get_logger()


class Certificate:
    """BadCertificate when the files are none. Later, bad files are told in the log; those before are kept."""

    def __init__(self, cert_file: str, key_file: str) -> None:
        self.cert_file = cert_file
        self.key_file = key_file
        self._stamp = self._look()
        # The one that a server listens with. Connections that it accepts are given the newest: a context that is in use
        # is never changed, so a bad file cannot spoil it half-way.
        self.context = self._newest = load_certificate(cert_file, key_file)
        self.context.sni_callback = self._show

    def _show(self, connection: ssl.SSLObject | ssl.SSLSocket, name: str, context: ssl.SSLContext) -> None:
        """Called for each handshake, also for one that names no server."""
        connection.context = self._newest

    def renew(self) -> bool:
        """Whether there are new files, and good ones."""
        stamp = self._look()
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            self._newest = load_certificate(self.cert_file, self.key_file)
        except BadCertificate as error:
            log.warning("the new certificate is not taken up; the one before goes on", reason=str(error))
            return False
        log.info("certificate renewed", file=self.cert_file)
        return True

    async def watch(self, renewed: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            if self.renew():
                renewed()

    def _look(self) -> list[Any]:
        """What differs once the files, what they link to, or who may read them have changed."""
        return [_stamp(Path(path)) for path in (self.cert_file, self.key_file)]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_ctime_ns
