"""Origins of web pages, as the setting `cors_origins` names them."""

ANY_ORIGIN = "*"


def parse_origins(text: str) -> tuple[str, ...]:
    """`https://a.example, https://b.example:8443` or `*`; ValueError with a sentence."""
    origins = tuple(part.strip() for part in text.split(",") if part.strip())
    for origin in origins:
        scheme, _, host = origin.partition("://")
        if origin != ANY_ORIGIN and (scheme not in ("http", "https") or not host or "/" in host):
            raise ValueError(f"{origin!r} is not an origin; expected * or a list such as https://app.example.com:8443")
    return origins
