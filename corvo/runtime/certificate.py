"""The TLS certificate of a node: checks its two files and loads them into a context for connections.

Not part of the pure core: it reads files. `corvo server` checks them before it starts anything; each gateway loads
them, and again when they are renewed.
"""

import os
import ssl
from pathlib import Path

CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"  # for TLS 1.2: forward secrecy, no CBC; all of TLS 1.3's are
PROTOCOLS = ("h2", "http/1.1")  # offered in the handshake (ALPN)


class BadCertificate(ValueError):
    """The files cannot be used: a sentence with the reason and the remedy."""


def load_certificate(cert_file: str, key_file: str) -> ssl.SSLContext:
    """A TLS context for the server's side. BadCertificate when the files cannot be used."""
    certificate, _ = _read("certificate", cert_file, "--tls-cert")
    key, mode = _read("key", key_file, "--tls-key")
    if b"-----BEGIN CERTIFICATE-----" not in certificate:
        raise BadCertificate(f"{cert_file} holds no certificate in PEM; choose another --tls-cert")
    if b"PRIVATE KEY-----" not in key:
        raise BadCertificate(f"{key_file} holds no private key in PEM; choose another --tls-key")
    if b"ENCRYPTED" in key:
        raise BadCertificate(
            f"the key {key_file} is locked by a pass phrase, and nobody is there to type it;"
            f" unlock it with `openssl pkey -in {key_file} -out unlocked.pem`"
        )
    if mode & 0o007:  # the group may read it: a Kubernetes volume belongs to a group
        raise BadCertificate(
            f"the key {key_file} is open to everybody; keep it to yourself with `chmod 600 {key_file}`"
        )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # HTTP/2 forbids it, and a client could use it to cause load
    context.set_ciphers(CIPHERS)
    context.set_alpn_protocols(list(PROTOCOLS))
    try:
        context.load_cert_chain(cert_file, key_file, password="none")  # otherwise OpenSSL would ask on the terminal
    except OSError as error:  # errors of ssl included; or a file was removed meanwhile
        raise BadCertificate(_reason(error, cert_file, key_file)) from None
    return context


def _read(what: str, path: str, flag: str) -> tuple[bytes, int]:
    """A file's content and its permissions."""
    try:
        with Path(path).open("rb") as file:
            return file.read(), os.fstat(file.fileno()).st_mode
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadCertificate(f"the {what} {path} cannot be read: {reason}; choose another {flag}") from None


def _reason(error: OSError, cert_file: str, key_file: str) -> str:
    reason = error.reason if isinstance(error, ssl.SSLError) else error.strerror
    if reason == "KEY_VALUES_MISMATCH":
        return f"the key {key_file} does not belong to the certificate {cert_file}; give two that were made together"
    why = (reason or "the PEM is damaged").replace("_", " ").lower()
    return f"the certificate {cert_file} with the key {key_file} cannot be used: {why}; make a new pair"
