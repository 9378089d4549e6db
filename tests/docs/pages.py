"""Documents as the tests see them: their fenced blocks with the orders before them, their links, their headings.

Orders are comments on the line before a block: `<!-- not run -->` leaves it alone, `<!-- in the background -->` runs
it until the end of the page.
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(
    r"(?:^<!-- (?P<order>[a-z ]+) -->\n\n?)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
_ANCHOR = re.compile(r'<a id="([^"]+)"></a>')


class Block(NamedTuple):
    language: str
    text: str
    order: str  # empty: run it
    line: int


def markdown_files() -> list[Path]:
    return sorted(
        [
            *ROOT.glob("*.md"),
            *(
                path
                for name in ("docs", "k8s", "sdk")
                for path in (ROOT / name).rglob("*.md")
                if "node_modules" not in path.parts
            ),
        ]
    )


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(text: str) -> list[Block]:
    return [
        Block(match["language"], match["text"], match["order"] or "", text.count("\n", 0, match.start("language")) + 1)
        for match in _FENCE.finditer(text)
    ]


def without_code(text: str) -> str:
    """Links and headings are looked for outside of blocks and quoted code."""
    return re.sub(r"`[^`\n]*`", "``", _FENCE.sub("", text))


def links(text: str) -> list[str]:
    return _LINK.findall(re.sub(r"`[^`\n]*`", "code", _FENCE.sub("", text)))


def headings(text: str) -> list[str]:
    return _HEADING.findall(_FENCE.sub("", text))


def anchors(text: str) -> set[str]:
    """As GitHub makes them: lower case, without punctuation, hyphens for spaces."""
    made = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings(text)}
    return made | set(_ANCHOR.findall(text))
