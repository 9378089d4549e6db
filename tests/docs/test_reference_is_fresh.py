"""docs/reference says what the code says."""

import pytest

from corvo import ops, queries
from corvo.model.errors import STATUS
from corvo.runtime.settings import names
from docs import generate, llms

BY_OTHERS = {"benchmarks.md", "payload-jq.md", "sdks.md"}
WRITTEN = {path.name for path in generate.REFERENCE.glob("*.md")} - BY_OTHERS


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return generate.pages()


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_the_page_is_what_the_code_says_now(name: str, pages: dict[str, str]) -> None:
    written = (generate.REFERENCE / name).read_text()

    assert written == pages[name], f"docs/reference/{name} is stale: run python -m docs.generate"


def test_the_index_for_machines_is_what_the_code_says_now() -> None:
    assert llms.PATH.read_text() == llms.llms(generate.ENDPOINTS), "it is stale: run python -m docs.generate"


def test_every_page_of_the_folder_is_generated(pages: dict[str, str]) -> None:
    assert pages.keys() == WRITTEN


def test_every_route_code_and_setting_is_there(pages: dict[str, str]) -> None:
    for endpoint in (*ops.ENDPOINTS, *queries.ENDPOINTS):
        assert f"## {endpoint.method} /api/v1{endpoint.path}\n" in pages["http-api.md"]
    for code in STATUS:
        assert f"`{code}`" in pages["errors.md"]
    for name in names():
        assert f"`{name}`" in pages["settings.md"]


@pytest.mark.parametrize("columns", ["40", "200"])
def test_the_help_has_the_same_width_in_every_terminal(
    columns: str, pages: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)

    assert generate.pages()["cli.md"] == pages["cli.md"]


def test_a_code_without_a_sentence_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STATUS, "BRAND_NEW", 418)

    with pytest.raises(SystemExit, match="BRAND_NEW"):
        generate.errors()
