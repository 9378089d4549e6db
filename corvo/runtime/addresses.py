"""Addresses as users write them: `host:port`, `[::1]:port`, `:port`. Pure: nothing is resolved or connected to."""

import ipaddress
from urllib.parse import urlsplit

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PORT_MAX = 65_535
EVERYWHERE = ("0.0.0.0", "::")


def split_address(address: str) -> tuple[str, int]:
    """`:8080` means every address. ValueError with a sentence when the text is not an address."""
    host, separator, port = address.rpartition(":")
    if not separator or not port.isascii() or not port.isdigit() or int(port) > PORT_MAX:
        raise ValueError("expected host:port or :port, with a port up to 65535")
    return host.strip("[]") or "0.0.0.0", int(port)


def join_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def check_reachable(address: str) -> None:
    """ValueError with a sentence when other nodes could not use this address."""
    host, port = split_address(address)
    if host in EVERYWHERE or not port:
        raise ValueError(f"{address!r} is not an address that others can reach: it needs a host and a port")


def is_reachable(address: str) -> bool:
    try:
        check_reachable(address)
    except ValueError:
        return False
    return True


def is_loopback(address: str) -> bool:
    """Whether the address is on this machine for certain. A name is not: it may resolve to anything."""
    host = split_address(address)[0]
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def parse_networks(text: str) -> tuple[Network, ...]:
    """`10.0.0.0/8,192.168.1.7`. Raises ValueError with a sentence."""
    networks = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        try:
            networks.append(ipaddress.ip_network(part))
        except ValueError as error:
            raise ValueError(f"{part!r} is no network: {error}") from None
    return tuple(networks)


def check_public_url(url: str) -> None:
    """`https://corvo.example.com`, without a path. ValueError with a sentence."""
    parts = urlsplit(url)
    is_bare = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username)
    if url and not (parts.scheme in ("http", "https") and parts.hostname and is_bare):
        raise ValueError("expected an address without a path, such as https://corvo.example.com")
