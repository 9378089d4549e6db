"""Takes secrets out of text that leaves the machine. Pure.

Two nets: the secrets that are known here, wherever they stand, and the shapes of secrets that are not. What looks like
one is taken for one: a lost word in a log costs less than a key in a ticket.
"""

import re
from collections.abc import Iterable

HIDDEN = "[redacted]"
KNOWN_CHARS_MIN = 6  # shorter ones would take ordinary words out

_SHAPES = (
    # -----BEGIN … KEY-----, to its end or to that of the text
    re.compile(r"-----BEGIN [A-Z0-9 ]*(?:KEY|CERTIFICATE)-----.*?(?:-----END [A-Z0-9 ]+-----|\Z)", re.DOTALL),
    re.compile(r"\bsk_[A-Za-z0-9]{16,}"),  # an API key
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),  # a token (JWT)
)
# What is kept, the secret, what is kept.
_CREDENTIALS = re.compile(r"(://[^\s/:@\"']*:)[^\s/\"']+(@)")
_HEADERS = re.compile(r"((?:bearer|basic)\s+)[A-Za-z0-9+/=._~-]{6,}()", re.IGNORECASE)
_NAMED = re.compile(
    r"""((?:password|passwd|secret|token|api[_-]?key|x-api-key|authorization|cookie)["']?\s*[=:]\s*)"""
    r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s,;&}\]"']+)()""",
    re.IGNORECASE,
)


class Redaction:
    def __init__(self, known: Iterable[str] = ()) -> None:
        longest_first = sorted({one for one in known if len(one) >= KNOWN_CHARS_MIN}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def of(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        for shape in _SHAPES:
            text = shape.sub(HIDDEN, text)
        for shape in (_CREDENTIALS, _HEADERS, _NAMED):
            text = shape.sub(rf"\1{HIDDEN}\2", text)
        return text
