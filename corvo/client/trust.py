"""Whose word a client takes for it that a server is the one it says."""

import os
import ssl

import httpx


class BadAuthority(ValueError):
    """Why there is nobody to trust, and what to do, in a sentence."""


def trusting(ca_cert: str | None) -> ssl.SSLContext:
    """A context for the client's side of connections. With a file, its certificates alone are trusted; without one,
    those of `SSL_CERT_FILE` or `SSL_CERT_DIR`, else the machine's and those that came with this program."""
    variable = next((name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)), None)
    named = f"--ca-cert {ca_cert}" if ca_cert else f"{variable} {os.environ.get(variable or '')}"
    try:
        if ca_cert:
            return ssl.create_default_context(cafile=ca_cert)
        context = httpx.create_ssl_context()
    except OSError as error:  # those of ssl are such, too
        reason = "it holds no certificate in PEM" if isinstance(error, ssl.SSLError) else str(error.strerror).lower()
        raise BadAuthority(f"{named} cannot be used: {reason}; name a file of certificates in PEM") from None
    if variable is None:
        context.load_default_certs()
    return context
