"""The certificate of a gateway, loaded again when its files change."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from corvo.runtime.certificate import BadCertificate, load_certificate

LOOK_S = 10.0  # between two checks of the files

log = structlog.get_logger()


class Certificate:
    """Raises BadCertificate if the files cannot be used. Later, bad files are logged and the old ones kept."""

    def __init__(self, cert_file: str, key_file: str) -> None:
        self.cert_file = cert_file
        self.key_file = key_file
        self._stamp = self._look()
        # The context that the server listens with. Each connection gets the newest one. A context in use is never
        # changed, so a bad file cannot break it.
        self.context = self._newest = load_certificate(cert_file, key_file)
        self.context.sni_callback = self._show

    def _show(self, connection: ssl.SSLObject | ssl.SSLSocket, name: str, context: ssl.SSLContext) -> None:
        """Called for each handshake, also for one without a server name."""
        connection.context = self._newest

    def renew(self) -> bool:
        """Load the files if they changed. Whether a new certificate is in use."""
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
        """Changes when the files, the targets of their links, or their permissions change."""
        return [_stamp(Path(path)) for path in (self.cert_file, self.key_file)]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_ctime_ns
