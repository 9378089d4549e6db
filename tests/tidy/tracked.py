"""The files that belong to the project: what git tracks. A reader's own folders beside them are nobody's business.

Where there is no git, as in an unpacked archive, everything counts that `.gitignore` does not name.
"""

import subprocess
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tracked_files(root: Path = ROOT) -> list[str]:
    """Paths from the root, with slashes; without those that are deleted and not committed yet."""
    names = _git_names(root)
    if names is None:
        names = _walk(root, "", ignored_names(root))
    return sorted(name for name in names if (root / name).is_file())


def top_folders(root: Path = ROOT) -> set[str]:
    return {name.partition("/")[0] for name in tracked_files(root) if "/" in name}


def ignored_names(root: Path = ROOT) -> list[str]:
    lines = (line.strip() for line in (root / ".gitignore").read_text().splitlines())
    patterns = [line for line in lines if line and not line.startswith("#")]
    return [pattern.strip("/") for pattern in patterns]


def is_ignored(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _git_names(root: Path) -> list[str] | None:
    if not (root / ".git").exists():
        return None
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True, timeout=60.0)
    except (OSError, subprocess.CalledProcessError):
        return None
    return [name for name in listed.stdout.decode().split("\0") if name]


def _walk(root: Path, above: str, ignored: list[str]) -> Iterable[str]:
    for path in sorted((root / above).iterdir()):
        name = f"{above}{path.name}"
        if is_ignored(path.name, ignored) or is_ignored(name, ignored) or path.name == ".git":
            continue
        if path.is_dir():
            yield from _walk(root, f"{name}/", ignored)
        else:
            yield name
