"""An authority for the length of a test, and the certificates that it signs."""

import ssl
from pathlib import Path
from typing import NamedTuple

import trustme


class Pair(NamedTuple):
    """The files of a certificate and its key."""

    cert: str
    key: str

    @property
    def flags(self) -> list[str]:
        return ["--tls-cert", self.cert, "--tls-key", self.key]


class Authority:
    def __init__(self, folder: Path) -> None:
        self._authority = trustme.CA()
        self._folder = folder
        self.file = str(folder / "authority.pem")
        self._authority.cert_pem.write_to_path(self.file)

    def sign(self, name: str = "server") -> Pair:
        """A certificate for this machine. The same name again: the files are written anew, whole, as renewing does."""
        signed = self._authority.issue_cert("localhost", "127.0.0.1")
        pair = Pair(str(self._folder / f"{name}.pem"), str(self._folder / f"{name}.key"))
        write_whole(pair.cert, b"".join(part.bytes() for part in signed.cert_chain_pems))
        write_whole(pair.key, signed.private_key_pem.bytes())
        return pair

    def context(self, *protocols: str) -> ssl.SSLContext:
        """Of a client that trusts this authority alone."""
        context = ssl.create_default_context(cafile=self.file)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context


def write_whole(path: str, content: bytes) -> None:
    draft = Path(f"{path}.new")
    draft.touch(mode=0o600)
    draft.write_bytes(content)
    draft.replace(path)
