"""What `pyproject.toml` installs with a server is what the product imports: no more, no less."""

import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import packages_distributions

from tests.tidy.house import PACKAGES, ROOT, imports, modules

NOT_IMPORTED = {"tzdata", "hpack"}  # read as files; pinned because h2 hands us its decoder
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def distribution(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def named(requirements: Iterable[str]) -> set[str]:
    return {distribution(match[0]) for text in requirements if (match := _NAME.match(text))}


def faults(imported: set[str], always: set[str], by_choice: set[str]) -> list[str]:
    return [
        *(f"{name} is imported and not installed: add it in pyproject.toml" for name in imported - always - by_choice),
        *(f"{name} is installed and imported by nobody: move it to dev, or remove it" for name in always - imported),
    ]


def imported_distributions() -> set[str]:
    tops = {name.split(".")[0] for module in modules() for _, name in imports(module)}
    others = tops - set(PACKAGES) - sys.stdlib_module_names
    known = packages_distributions()
    return {distribution(name) for top in others for name in known[top]}


def test_a_server_has_the_packages_that_it_imports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    by_choice = [text for extra, texts in extras.items() if extra != "dev" for text in texts]
    always = named(project["dependencies"]) - NOT_IMPORTED

    assert faults(imported_distributions(), always, named(by_choice)) == []


def test_a_missing_and_a_needless_package_are_caught() -> None:
    assert faults({"h11"}, set(), set())
    assert faults(set(), {"croniter"}, set())
    assert faults({"granian", "h11"}, {"h11"}, {"granian"}) == []
    assert named(["psycopg[binary]>=3.2", "Google_RE2>=1"]) == {"psycopg", "google-re2"}
