"""Every link inside the project leads somewhere, and every document is a proper one."""

from pathlib import Path

import pytest

from tests.docs.pages import anchors, headings, links, markdown_files, name_of, without_code

OUTSIDE = ("http://", "https://", "mailto:")


def dead_links(path: Path, text: str) -> list[str]:
    sentences = []
    for link in links(text):
        if link.startswith(OUTSIDE):
            continue
        target, _, anchor = link.partition("#")
        file = (path.parent / target).resolve() if target else path
        if not file.exists():
            sentences.append(f"{name_of(path)} links to {link}, which does not exist")
        elif anchor and file.suffix == ".md" and anchor not in anchors(text if file == path else file.read_text()):
            sentences.append(f"{name_of(path)} links to {link}, but {file.name} has no such heading")
    return sentences


@pytest.mark.parametrize("path", markdown_files(), ids=name_of)
def test_every_link_leads_somewhere(path: Path) -> None:
    assert dead_links(path, path.read_text()) == []


@pytest.mark.parametrize("path", markdown_files(), ids=name_of)
def test_a_document_has_one_title_and_it_comes_first(path: Path) -> None:
    text = path.read_text()

    titles = [line for line in without_code(text).splitlines() if line.startswith("# ")]

    assert len(titles) == 1, f"{name_of(path)} has the titles {titles}"
    assert text.startswith(titles[0][:2])
    assert headings(text)


def test_every_document_is_reachable_from_the_front_door() -> None:
    front = next(path for path in markdown_files() if name_of(path) == "README.md")
    seen: set[Path] = set()
    waiting = [front]
    while waiting:
        path = waiting.pop()
        if path in seen or path.suffix != ".md":
            continue
        seen.add(path)
        inside = [link.partition("#")[0] for link in links(path.read_text()) if not link.startswith(OUTSIDE)]
        waiting += [file for link in inside if link and (file := (path.parent / link).resolve()).is_file()]

    assert [name_of(path) for path in markdown_files() if path not in seen] == []


@pytest.mark.parametrize("link", ["nowhere.md", "README.md#no-such-heading", "#nor-here"])
def test_a_dead_link_is_caught(link: str) -> None:
    front = next(path for path in markdown_files() if name_of(path) == "README.md")

    assert dead_links(front, f"# Title\n\n[text]({link})\n")


def test_links_inside_code_are_left_alone() -> None:
    front = next(path for path in markdown_files() if name_of(path) == "README.md")

    assert dead_links(front, "# Title\n\n`[text](nowhere.md)`\n\n```text\n[text](nowhere.md)\n```\n") == []
